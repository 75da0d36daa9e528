/// Code mapped in small ranges, so that running it makes little more resident than it touches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>

namespace tightship::os {

constexpr size_t kFinePiece = 128 << 10;

/// Divides the mapping [start, stop) of a file, from `file_offset` on, into ranges of 128 KiB, so
/// that a page fault brings in no more than 64 KiB.
///
/// Linux maps all pages of a large folio at once if the mapping spans it, and a file just written
/// lies in folios of up to 2 MiB: 16 MiB of libdnnl became resident instead of 3. Where a folio
/// exceeds the mapping, Linux maps one page, or the 64 KiB around it. Adjacent ranges stay apart
/// because every other one is left out of core dumps, which hold no clean pages of files anyway.
/// Folios are aligned to their size and the limits of ranges lie 64 KiB beside such an address, so
/// the largest folio within a range has 64 KiB. Nothing changes if the system refuses.
inline void map_finely(uintptr_t start, uintptr_t stop, size_t file_offset) {
#ifdef MADV_DONTDUMP
    const uintptr_t shift = file_offset + kFinePiece / 2 - start; // of addresses, modulo 2^64
    for (uintptr_t from = start; from < stop;) {
        const uintptr_t piece = (from + shift) / kFinePiece;
        const uintptr_t to = std::min<uintptr_t>(stop, (piece + 1) * kFinePiece - shift);
        if (piece % 2 != 0 &&
            madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTDUMP) != 0)
            return;
        from = to;
    }
#else
    (void)start, (void)stop, (void)file_offset;
#endif
}

} // namespace tightship::os
