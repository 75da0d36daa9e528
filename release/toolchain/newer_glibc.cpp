/// Functions of later glibcs that GCC's headers and libstdc++ use, for a wheel that runs on earlier
/// ones. Each calls the system's own where there is one.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/random.h>

namespace {

template <class Function> Function *of_the_system(const char *name) {
    return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

constexpr int64_t kSecond = 1'000'000'000;

int64_t nanoseconds(const timespec &time) {
    return time.tv_sec * kSecond + time.tv_nsec;
}

/// The time of day at which another clock will show `deadline`, unless it is set meanwhile.
timespec time_of_day(clockid_t clock, const timespec &deadline) {
    timespec there, here;
    clock_gettime(clock, &there);
    clock_gettime(CLOCK_REALTIME, &here);
    const int64_t at = nanoseconds(here) + nanoseconds(deadline) - nanoseconds(there);
    return {time_t(std::max<int64_t>(at, 0) / kSecond), long(std::max<int64_t>(at, 0) % kSecond)};
}

} // namespace

extern "C" {

/// glibc 2.32: whether reference counts need no atomic instructions. They always have them here.
char __libc_single_threaded = 0;

/// glibc 2.30.
int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const timespec *deadline) {
    static const auto system = of_the_system<decltype(pthread_cond_clockwait)>(__func__);
    if (system != nullptr)
        return system(condition, mutex, clock, deadline);
    if (clock == CLOCK_REALTIME)
        return pthread_cond_timedwait(condition, mutex, deadline);
    const timespec until = time_of_day(clock, *deadline);
    return pthread_cond_timedwait(condition, mutex, &until);
}

/// glibc 2.33.
struct mallinfo2 mallinfo2() noexcept {
    static const auto system = of_the_system<decltype(mallinfo2)>(__func__);
    if (system != nullptr)
        return system();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // its counts are of 32 bits
    const struct mallinfo heap = mallinfo();
#pragma GCC diagnostic pop
    struct mallinfo2 wide = {};
    wide.arena = unsigned(heap.arena);
    wide.hblkhd = unsigned(heap.hblkhd);
    return wide;
}

/// glibc 2.36.
uint32_t arc4random() noexcept {
    uint32_t number = 0;
    while (getrandom(&number, sizeof number, 0) != sizeof number) {
    }
    return number;
}
}
