#include "code.hpp"

#include "tightship/os/fine_mapping.hpp"

#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

size_t page_bytes() {
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

/// Returns the bytes of pages up to the last one that has memory or lies in swap; all if the system
/// does not say. `start` is at a page's limit.
size_t touched_bytes(const char *start, size_t size_bytes) {
    constexpr size_t kPagesMax = 64; // 256 KiB, which oneDNN reserves for a kernel
    constexpr uint64_t kIsThere = uint64_t{3} << 62;
    const size_t page = page_bytes(), pages = size_bytes / page;
    const int file = pages > kPagesMax ? -1 : open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return size_bytes;
    uint64_t entries[kPagesMax];
    const size_t wanted = pages * sizeof(uint64_t);
    const auto from = reinterpret_cast<uintptr_t>(start) / page * sizeof(uint64_t);
    const ssize_t got = pread(file, entries, wanted, static_cast<off_t>(from));
    close(file);
    if (got != static_cast<ssize_t>(wanted))
        return size_bytes;
    size_t touched = pages;
    while (touched > 0 && (entries[touched - 1] & kIsThere) == 0)
        --touched;
    return touched * page;
}

/// Returns the bytes of pages up to the last one with a byte that is not zero.
///
/// Reads the content of all pages that have any, because a page may be there only as part of a
/// huge page. The others are left alone: reading them takes a page fault each.
size_t filled_bytes(const char *start, size_t size_bytes) {
    const size_t page = page_bytes();
    size_bytes = touched_bytes(start, size_bytes);
    for (; size_bytes > 0; size_bytes -= page) {
        const char *const last = start + size_bytes - page;
        if (last[0] != 0 || std::memcmp(last, last + 1, page - 1) != 0)
            break;
    }
    return size_bytes;
}

/// Maps finely the segment of `library` whose code contains `address`; 1 if there is one, else 0.
int map_code_finely(dl_phdr_info *library, size_t, void *address) {
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    for (const ElfW(Phdr) *each = library->dlpi_phdr;
         each != library->dlpi_phdr + library->dlpi_phnum; ++each) {
        const uintptr_t start = library->dlpi_addr + each->p_vaddr;
        if (each->p_type != PT_LOAD || (each->p_flags & PF_X) == 0 ||
            wanted - start >= each->p_filesz)
            continue;
        const uintptr_t page = page_bytes();
        const uintptr_t before = start % page; // segments begin anywhere in a page
        const uintptr_t stop = (start + each->p_filesz + page - 1) / page * page;
        tightship::os::map_finely(start - before, stop, each->p_offset - before);
        return 1;
    }
    return 0;
}

} // namespace

int tsm_seal(void *start, size_t size_bytes, int access) {
    constexpr int kCode = PROT_WRITE | PROT_EXEC;
    if (mprotect(start, size_bytes, access) != 0)
        return -1;
    if ((access & kCode) != kCode)
        return 0;
    size_bytes = (size_bytes + page_bytes() - 1) / page_bytes() * page_bytes();
    const size_t filled = filled_bytes(static_cast<char *>(start), size_bytes);
    if (filled == size_bytes)
        return 0;
    constexpr int kZeros = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    void *const rest = static_cast<char *>(start) + filled;
    if (mmap(rest, size_bytes - filled, access, kZeros, -1, 0) != MAP_FAILED)
        return 0;
    return mprotect(start, size_bytes, access); // fails unless the old pages are still there
}

void tsm_on_load() {
    dl_iterate_phdr(&map_code_finely, __builtin_return_address(0));
}
