#include "cpu.hpp"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tightship::omp {

namespace {

timespec as_timespec(Nanoseconds duration) {
    return {static_cast<time_t>(duration.count() / 1'000'000'000),
            static_cast<long>(duration.count() % 1'000'000'000)};
}

Nanoseconds read(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

} // namespace

Nanoseconds now() {
    return read(CLOCK_MONOTONIC);
}

void sleep_while(std::atomic<uint32_t> &word, uint32_t expected, std::optional<Nanoseconds> limit) {
    const timespec time = as_timespec(limit.value_or(Nanoseconds(0)));
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, limit ? &time : nullptr, nullptr, 0);
}

void wake(std::atomic<uint32_t> &word, int sleepers) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr, 0);
}

Nanoseconds processor_time(int thread_id) {
    // The clock of a thread, as the kernel numbers clocks (CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED).
    return read(static_cast<clockid_t>((~static_cast<unsigned>(thread_id) << 3) | 6U));
}

cpu_set_t allowed_processors() {
    cpu_set_t processors;
    CPU_ZERO(&processors);
    sched_getaffinity(0, sizeof processors, &processors);
    return processors;
}

void limit_thread(int thread_id, const cpu_set_t &processors) {
    sched_setaffinity(thread_id, sizeof processors, &processors);
}

} // namespace tightship::omp
