#include "tightship/os_limits.hpp"

#include <algorithm>
#include <array>
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

constexpr size_t kAlways = 1; // values of vm.overcommit_memory; 0 is a guess
constexpr size_t kNever = 2;

/// The number behind the first `words` of a file; `missing` where there is none.
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

} // namespace tightship::os
