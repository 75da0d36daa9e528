#include "tightship/os/limits.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/sysinfo.h>
#endif
#include <unistd.h>

namespace tightship::os {

namespace {

constexpr size_t kAlways = 1; // values of vm.overcommit_memory; 0 is heuristic
constexpr size_t kNever = 2;

/// Returns the number behind the first `words` of a file; `missing` if there is none.
size_t number_in(const char *path, const char *words, size_t missing) {
    std::array<char, 4096> text{};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return missing;
    const ssize_t count = read(file, text.data(), text.size() - 1);
    close(file);
    const char *found = count > 0 ? std::strstr(text.data(), words) : nullptr;
    size_t number = 0;
    return found != nullptr && std::sscanf(found + std::strlen(words), "%zu", &number) == 1
               ? number
               : missing;
}

/// Divisors of the system's limit: the part withheld from `may_split`; the margin below half of the
/// limit; and the part that may be taken between two counts, as a divisor of that half.
constexpr size_t kKeptPart = 64, kMarginPart = 64, kTakenPart = 128;
/// Calls of `may_split` for which a refusal holds, because a count takes milliseconds at that
/// point.
constexpr int kRefusals = 4096;

std::atomic<long> ranges_left{0}; // as of the last count, less those taken since
std::atomic<int> refusals_left{0};
std::atomic<size_t> first_count{0};

/// Returns the number of mappings that the whole process may have before we refuse. If other code
/// had many already when we first asked, we may still take a quarter of the system's limit.
size_t map_bound() {
    const size_t limit = map_limit();
    return std::max(limit / 2, std::min(first_count + limit / 4, limit - limit / 8)) -
           limit / kMarginPart;
}

/// Counts the mappings, and returns how many are left. While any are left, some may be taken at
/// once: otherwise a process close to the bound would count for each.
long count_again() {
    const size_t used = map_limit() > 0 ? map_count() : 0;
    if (used == 0) { // the system does not say, or the process may open no file to read it from
        ranges_left = static_cast<long>(map_limit() / kTakenPart) + 1;
        return LONG_MAX / 2;
    }
    if (size_t none = 0; first_count == 0)
        first_count.compare_exchange_strong(none, used);
    refusals_left = 0;
    const long room = static_cast<long>(map_bound()) - static_cast<long>(used);
    ranges_left = room > 0 ? std::max(room, static_cast<long>(map_limit() / kTakenPart)) : 0;
    return room;
}

bool take(long count, long kept) {
    if (ranges_left.fetch_sub(count, std::memory_order_relaxed) - count >= kept)
        return true;
    if (const long room = count_again(); room <= 0 || room - count < kept)
        return false;
    ranges_left.fetch_sub(count, std::memory_order_relaxed);
    return true;
}

size_t limit_of(int what) {
    struct rlimit limit{};
    return getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                           : SIZE_MAX;
}

} // namespace

size_t memory_bytes() {
#ifdef __linux__
    struct sysinfo machine{};
    if (sysinfo(&machine) == 0)
        return (machine.totalram + machine.totalswap) * machine.mem_unit;
#endif
    return SIZE_MAX;
}

size_t largest_mapping() {
    size_t bytes = std::min(limit_of(RLIMIT_DATA), limit_of(RLIMIT_AS));
    const size_t overcommit = number_in("/proc/sys/vm/overcommit_memory", "", kAlways);
    if (overcommit == kNever) {
        const size_t kilobytes = number_in("/proc/meminfo", "CommitLimit:", SIZE_MAX >> 10);
        bytes = std::min(bytes, kilobytes << 10);
    } else if (overcommit != kAlways) {
        bytes = std::min(bytes, memory_bytes());
    }
    return bytes;
}

size_t file_limit() {
    return limit_of(RLIMIT_NOFILE);
}

size_t map_limit() {
    static const size_t limit = number_in("/proc/sys/vm/max_map_count", "", 0);
    return limit;
}

size_t map_count() {
    std::array<char, 16384> text;
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    size_t lines = 0;
    for (ssize_t count; (count = read(file, text.data(), text.size())) > 0;)
        lines += static_cast<size_t>(std::count(text.data(), text.data() + count, '\n'));
    close(file);
    return lines;
}

size_t maps_left() {
    return static_cast<size_t>(std::max(count_again(), 0L));
}

bool may_map(size_t count) {
    return take(static_cast<long>(count), 0);
}

bool may_split(size_t count) {
    if (refusals_left.load(std::memory_order_relaxed) > 0) {
        refusals_left.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    if (take(static_cast<long>(count), static_cast<long>(map_limit() / kKeptPart)))
        return true;
    refusals_left = kRefusals;
    return false;
}

} // namespace tightship::os
