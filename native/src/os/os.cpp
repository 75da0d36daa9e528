#include "tightship/os/os.hpp"

#include "tightship/os/fine_mapping.hpp"
#include "tightship/os/limits.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sched.h>
#include <sys/mman.h>
#ifdef __linux__
#include <linux/membarrier.h>
#include <sys/syscall.h>
#endif
#include <unistd.h>

namespace tightship::os {

size_t page_size() {
    static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

namespace {

char *map_pages(size_t size_bytes) {
    void *pointer =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pointer == MAP_FAILED ? nullptr : static_cast<char *>(pointer);
}

/// Maps pages that start on a boundary; null if the system refuses the slack.
char *map_aligned(size_t size_bytes, size_t alignment) {
    if (size_bytes + alignment < size_bytes)
        return nullptr;
    char *pointer = map_pages(size_bytes + alignment);
    if (pointer == nullptr)
        return nullptr;
    const size_t before = -reinterpret_cast<uintptr_t>(pointer) % alignment;
    if (before > 0)
        munmap(pointer, before);
    munmap(pointer + before + size_bytes, alignment - before);
    return pointer + before;
}

} // namespace

bool has_room(size_t size_bytes) {
    char *pointer = map_pages(size_bytes);
    if (pointer != nullptr)
        munmap(pointer, size_bytes);
    return pointer != nullptr;
}

void *map(size_t size_bytes, size_t alignment) {
    if (!may_map(2)) // one mapping of its own, and one that it cuts off another
        return nullptr;
#ifdef MADV_HUGEPAGE
    if (size_bytes >= kHugePage) {
        if (char *pointer = map_aligned(size_bytes, std::max(alignment, kHugePage))) {
            madvise(pointer, size_bytes, MADV_HUGEPAGE);
            return pointer;
        }
    }
#endif
    return alignment > page_size() ? map_aligned(size_bytes, alignment) : map_pages(size_bytes);
}

unsigned current_cpu() {
#ifdef __linux__
    const int cpu = sched_getcpu();
    return cpu < 0 ? 0 : static_cast<unsigned>(cpu);
#else
    return 0;
#endif
}

void unmap(void *pointer, size_t size_bytes) {
    munmap(pointer, size_bytes);
}

size_t discard(void *start, size_t size_bytes) {
    const auto from = reinterpret_cast<uintptr_t>(start);
    const uintptr_t first = (from + page_size() - 1) / page_size() * page_size();
    const uintptr_t stop = (from + size_bytes) / page_size() * page_size();
    if (first >= stop || madvise(reinterpret_cast<void *>(first), stop - first, MADV_DONTNEED) != 0)
        return 0;
    return stop - first;
}

#ifdef SYS_membarrier
bool register_thread_barrier() {
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void thread_barrier() {
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}
#else
bool register_thread_barrier() {
    return false;
}

void thread_barrier() {}
#endif

void release_code(const std::string &path) {
#ifdef __linux__
    // Uses the C library alone, because streams would bring in more code than some files have.
    char *const canonical = realpath(path.c_str(), nullptr);
    std::FILE *const maps = canonical ? std::fopen("/proc/self/maps", "re") : nullptr;
    const std::string end = canonical ? " " + std::string(canonical) + "\n" : "";
    std::free(canonical);
    if (maps == nullptr)
        return;
    char *line = nullptr;
    size_t room = 0;
    while (getline(&line, &room, maps) > 0) {
        uintptr_t start = 0, stop = 0, offset = 0;
        char access[5] = {};
        if (!std::string_view(line).ends_with(end) ||
            std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNxPTR, &start, &stop, access,
                        &offset) != 4 ||
            std::string_view(access) != "r-xp")
            continue;
        madvise(reinterpret_cast<void *>(start), stop - start, MADV_DONTNEED);
        if (stop - start > kFinePiece) // a smaller one needs no cut
            map_finely(start, stop, offset);
    }
    std::free(line);
    std::fclose(maps);
#else
    (void)path;
#endif
}

bool protect(void *pointer, size_t size_bytes, bool is_open) {
    return mprotect(pointer, size_bytes, is_open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

void release_heap() {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void use_one_heap() {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
#endif
}

size_t heap_bytes() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 heap = mallinfo2();
    return heap.arena + heap.hblkhd;
#else
    return 0;
#endif
}

} // namespace tightship::os
