#include "tightship/os/guard.hpp"

#include "tightship/os/os.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <new>

#include <sys/mman.h>

namespace tightship::os {
namespace {

/// Addresses that the handler protects; `start` is 0 if the entry is free.
struct Guard {
    std::atomic<uintptr_t> start{0};
    std::atomic<uintptr_t> stop{0};
    std::atomic<bool> is_lost{false};
};

std::array<Guard, kGuardsMax> guards;
std::mutex claiming;
struct sigaction before{};

static_assert(std::atomic<uintptr_t>::is_always_lock_free, "a handler may not wait");

/// Maps zeros in place of a file; false if the address does not lie in a guard.
bool replaced(uintptr_t address) {
    for (Guard &guard : guards) {
        const uintptr_t start = guard.start.load(std::memory_order_acquire);
        const uintptr_t stop = guard.stop.load(std::memory_order_acquire);
        if (start == 0 || address < start || address >= stop)
            continue;
        guard.is_lost.store(true, std::memory_order_release);
        constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
        return mmap(reinterpret_cast<void *>(start), stop - start, PROT_READ | PROT_WRITE, kFlags,
                    -1, 0) != MAP_FAILED;
    }
    return false;
}

void on_bus_error(int number, siginfo_t *info, void *context) {
    const int saved = errno;
    const bool is_ours = replaced(reinterpret_cast<uintptr_t>(info->si_addr));
    errno = saved;
    if (is_ours)
        return;
    if ((before.sa_flags & SA_SIGINFO) != 0)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        std::signal(SIGBUS, SIG_DFL); // the instruction runs again, and ends the process
}

/// Installs the handler, again if another library has replaced it since. What it passes on goes to
/// the handler that was there first: a later one may call ours as its own predecessor.
/// REQUIRES: `claiming` is held.
void install() {
    static bool was_installed = false;
    struct sigaction current{};
    if (sigaction(SIGBUS, nullptr, &current) != 0)
        return;
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == on_bus_error)
        return;
    if (!was_installed)
        before = current;
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    was_installed = sigaction(SIGBUS, &action, nullptr) == 0 || was_installed;
}

} // namespace

GuardedMapping::GuardedMapping(int file, size_t offset_bytes, size_t size_bytes)
    : size_bytes_(size_bytes) {
    const std::lock_guard<std::mutex> lock(claiming);
    install();
    guard_ = 0;
    while (guard_ < kGuardsMax && guards[guard_].start != 0)
        ++guard_;
    if (guard_ == kGuardsMax)
        throw std::bad_alloc();
    void *const mapped = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                              static_cast<off_t>(offset_bytes));
    if (mapped == MAP_FAILED)
        throw std::bad_alloc();
    start_ = static_cast<unsigned char *>(mapped);
    Guard &guard = guards[guard_];
    guard.is_lost = false;
    const size_t page = page_size(); // a kernel may read to the end of the last page
    guard.stop = reinterpret_cast<uintptr_t>(start_) + (size_bytes + page - 1) / page * page;
    guard.start.store(reinterpret_cast<uintptr_t>(start_), std::memory_order_release);
}

GuardedMapping::~GuardedMapping() {
    const std::lock_guard<std::mutex> lock(claiming);
    guards[guard_].start.store(0, std::memory_order_release);
    munmap(start_, size_bytes_);
}

bool GuardedMapping::is_lost() const {
    return guards[guard_].is_lost.load(std::memory_order_acquire);
}

} // namespace tightship::os
