#include "tightship/os/os.hpp"

#include "tightship/os/fine_mapping.hpp"
#include "tightship/os/limits.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sched.h>
#include <sys/mman.h>
#ifdef __linux__
#include <link.h>
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

#ifdef __linux__
namespace {

/// File whose code is wanted, by its canonical path.
struct WantedFile {
    const char *path;
    const char *name;
};

const char *name_of(const char *path) {
    const char *const slash = std::strrchr(path, '/');
    return slash == nullptr ? path : slash + 1;
}

void release_segment(const dl_phdr_info &object, const ElfW(Phdr) & segment) {
    const uintptr_t first = object.dlpi_addr + segment.p_vaddr;
    const uintptr_t start = first / page_size() * page_size();
    const uintptr_t stop = (first + segment.p_filesz + page_size() - 1) / page_size() * page_size();
    madvise(reinterpret_cast<void *>(start), stop - start, MADV_DONTNEED);
    if (stop - start > kFinePiece) // a smaller one needs no cut
        map_finely(start, stop, segment.p_offset / page_size() * page_size());
}

/// Releases the code of a loaded object if its file is the wanted one; returns 1 then, which ends
/// the walk.
int release_if_wanted(dl_phdr_info *object, size_t, void *data) {
    const auto &wanted = *static_cast<const WantedFile *>(data);
    if (std::strcmp(name_of(object->dlpi_name), wanted.name) != 0)
        return 0;
    char *const canonical = realpath(object->dlpi_name, nullptr);
    const bool is_same = canonical != nullptr && std::strcmp(canonical, wanted.path) == 0;
    std::free(canonical);
    if (!is_same)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const auto &segment = object->dlpi_phdr[i];
        if (segment.p_type == PT_LOAD && segment.p_flags == (PF_R | PF_X))
            release_segment(*object, segment);
    }
    return 1;
}

} // namespace
#endif

void release_code(const std::string &path) {
#ifdef __linux__
    // The loader knows where code lies; to read /proc/self/maps takes milliseconds.
    char *const canonical = realpath(path.c_str(), nullptr);
    if (canonical == nullptr)
        return;
    WantedFile wanted{canonical, name_of(path.c_str())};
    dl_iterate_phdr(release_if_wanted, &wanted);
    std::free(canonical);
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
