#include "tightship/os/map.hpp"

#include "tightship/os/limits.hpp"
#include "tightship/os/os.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tightship::os {

namespace {

/// Flags without MAP_NORESERVE, so that the system counts pages as the process's memory once
/// `protect` opens them; closed pages count for no limit but that of addresses.
constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS;

} // namespace

void *reserve(size_t size_bytes, size_t alignment) {
    if (size_bytes + alignment < size_bytes || !may_map(2))
        return nullptr;
    void *mapped = mmap(nullptr, size_bytes + alignment, PROT_NONE, kReserved, -1, 0);
    if (mapped == MAP_FAILED)
        return nullptr;
    auto *start = static_cast<char *>(mapped);
    const size_t before = -reinterpret_cast<uintptr_t>(start) % alignment;
    if (before > 0)
        munmap(start, before);
    munmap(start + before + size_bytes, alignment - before);
    return start + before;
}

void *reserve_pages(size_t size_bytes) {
    const bool spans_huge = size_bytes >= kHugePage;
    void *start = reserve(size_bytes, spans_huge ? kHugePage : page_size());
#ifdef MADV_HUGEPAGE
    if (start != nullptr && spans_huge)
        madvise(start, size_bytes, MADV_HUGEPAGE);
#endif
    return start;
}

bool reserve_at(void *wanted, size_t size_bytes) {
    int flags = kReserved;
#ifdef MAP_FIXED_NOREPLACE
    flags |= MAP_FIXED_NOREPLACE;
#endif
    void *got = mmap(wanted, size_bytes, PROT_NONE, flags, -1, 0);
    if (got == MAP_FAILED)
        return false;
    if (got == wanted)
        return true;
    munmap(got, size_bytes);
    return false;
}

void release(void *pointer, size_t size_bytes) {
    munmap(pointer, size_bytes);
}

bool commit(void *pointer, size_t size_bytes) {
    // Not by mapping over them, because the system does not check RLIMIT_DATA there.
    if (!may_map(2) || !protect(pointer, size_bytes, true))
        return false;
#ifdef MADV_HUGEPAGE
    if (size_bytes >= kHugePage)
        madvise(pointer, size_bytes, MADV_HUGEPAGE);
#endif
    return true;
}

bool commit_file(void *pointer, size_t size_bytes, int file, size_t offset_bytes) {
    return may_map(2) && mmap(pointer, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                              file, static_cast<off_t>(offset_bytes)) != MAP_FAILED;
}

bool show_file(void *pointer, size_t size_bytes, int file, size_t offset_bytes) {
    // A shared mapping would count as a writer of the file, which could not be sealed then.
    return mmap(pointer, size_bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, file,
                static_cast<off_t>(offset_bytes)) != MAP_FAILED;
}

bool show_zeros(void *pointer, size_t size_bytes) {
    return mmap(pointer, size_bytes, PROT_READ, kReserved | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void use_small_pages(void *pointer, size_t size_bytes) {
#ifdef MADV_NOHUGEPAGE
    madvise(pointer, size_bytes, MADV_NOHUGEPAGE);
#else
    (void)pointer, (void)size_bytes;
#endif
}

bool decommit(void *pointer, size_t size_bytes) {
    return mmap(pointer, size_bytes, PROT_NONE, kReserved | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool move_pages(void *from, size_t size_bytes, void *to) {
#if defined(MREMAP_DONTUNMAP)
    // Without MREMAP_DONTUNMAP another thread could map something into the hole before it is
    // reserved.
    if (mremap(from, size_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
               to) == MAP_FAILED)
        return false;
    decommit(from, size_bytes);
    return true;
#else
    (void)from, (void)size_bytes, (void)to;
    return false;
#endif
}

bool punch_hole(int file, size_t offset_bytes, size_t size_bytes) {
#ifdef FALLOC_FL_PUNCH_HOLE
    return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     static_cast<off_t>(offset_bytes), static_cast<off_t>(size_bytes)) == 0;
#else
    (void)file, (void)offset_bytes, (void)size_bytes;
    return false;
#endif
}

bool extend_file(int file, size_t size_bytes) {
    return ftruncate(file, static_cast<off_t>(size_bytes)) == 0;
}

} // namespace tightship::os
