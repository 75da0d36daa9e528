#include "code.hpp"

#include "tightship/os_fine_mapping.hpp"

#include <algorithm>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

/// Pages behind the written ones that stay writable: oneDNN adds to some code as it first runs (of
/// float16 on AMX).
constexpr size_t kOpenPages = 2;

thread_local size_t sealed_bytes = 0;

/// Bytes of the pages that hold something. A kernel fills its reservation from the start.
size_t written_bytes(void *start, size_t size_bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> is_held((size_bytes + page - 1) / page);
    if (mincore(start, size_bytes, is_held.data()) != 0)
        return size_bytes;
    const auto held = std::count_if(is_held.begin(), is_held.end(),
                                    [](unsigned char flags) { return (flags & 1U) != 0; });
    return static_cast<size_t>(held) * page;
}

/// Maps the segment of `library` finely that has the code at `address`; 1 where it has.
int map_code_finely(dl_phdr_info *library, size_t, void *address) {
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    for (const ElfW(Phdr) *each = library->dlpi_phdr;
         each != library->dlpi_phdr + library->dlpi_phnum; ++each) {
        const uintptr_t start = library->dlpi_addr + each->p_vaddr;
        if (each->p_type != PT_LOAD || (each->p_flags & PF_X) == 0 ||
            wanted - start >= each->p_filesz)
            continue;
        const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
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
    if ((access & kCode) != kCode)
        return mprotect(start, size_bytes, access);
#ifdef MADV_NOHUGEPAGE
    // A huge page over several reservations would make resident what no kernel fills.
    madvise(start, size_bytes, MADV_NOHUGEPAGE);
#endif
    const size_t written = written_bytes(start, size_bytes);
    sealed_bytes += written;
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t open = std::min(written + kOpenPages * page, size_bytes);
    if (mprotect(start, open, access) != 0)
        return -1;
    return mprotect(static_cast<char *>(start) + open, size_bytes - open, PROT_READ | PROT_EXEC);
}

void tsm_on_load() {
    dl_iterate_phdr(&map_code_finely, __builtin_return_address(0));
}

size_t tsm_sealed_bytes() {
    return sealed_bytes;
}
