#include "tightship/os.hpp"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

namespace tightship::os {

size_t page_size() {
    static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

char *map_pages(size_t size_bytes) {
    void *pointer =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pointer == MAP_FAILED ? nullptr : static_cast<char *>(pointer);
}

/// Pages that start on a boundary of huge ones; null where the system refuses the slack.
char *map_aligned(size_t size_bytes) {
    char *pointer = map_pages(size_bytes + kHugePage);
    if (pointer == nullptr)
        return nullptr;
    const size_t before = -reinterpret_cast<uintptr_t>(pointer) % kHugePage;
    if (before > 0)
        munmap(pointer, before);
    munmap(pointer + before + size_bytes, kHugePage - before);
    return pointer + before;
}

} // namespace

void *map(size_t size_bytes) {
#ifdef MADV_HUGEPAGE
    if (size_bytes >= kHugePage && size_bytes + kHugePage > size_bytes) {
        if (char *pointer = map_aligned(size_bytes)) {
            madvise(pointer, size_bytes, MADV_HUGEPAGE);
            return pointer;
        }
    }
#endif
    return map_pages(size_bytes);
}

void unmap(void *pointer, size_t size_bytes) {
    munmap(pointer, size_bytes);
}

void release_code(const std::string &path) {
#ifdef __linux__
    std::error_code unknown;
    const std::string file = std::filesystem::canonical(path, unknown).string();
    std::ifstream maps(unknown ? "" : "/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        uintptr_t start = 0, stop = 0;
        char access[5] = {};
        if (!line.ends_with(" " + file) ||
            std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &stop, access) != 3)
            continue;
        if (std::string_view(access) == "r-xp")
            madvise(reinterpret_cast<void *>(start), stop - start, MADV_DONTNEED);
    }
#else
    (void)path;
#endif
}

} // namespace tightship::os
