/// Address space and the pages that back it, moved about. Beside `os.hpp`, the only such file. What
/// maps anew asks `may_map` first; what may cut a range in two leaves that to its caller.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tightship::os {

/// Addresses without memory, at a multiple of `alignment`; null when the system refuses.
void *reserve(size_t size_bytes, size_t alignment);
/// Whole pages for `protect` to open, when the system counts them as the process's memory, and to
/// close again once they are discarded. Huge ones where they span huge pages.
void *reserve_pages(size_t size_bytes);
/// The same as `reserve` at `wanted` and nowhere else; false where something lies there.
bool reserve_at(void *wanted, size_t size_bytes);
void release(void *pointer, size_t size_bytes);

/// Zeroed private pages in place of reserved addresses, huge ones where they span huge pages. False
/// where the system would not let the process map so much at once.
bool commit(void *pointer, size_t size_bytes);
/// A file's bytes in place of reserved addresses, written through to it.
bool commit_file(void *pointer, size_t size_bytes, int file, size_t offset_bytes);
/// Reserved addresses again; what was there is lost.
bool decommit(void *pointer, size_t size_bytes);
/// Moves private pages to reserved addresses, contents and all, without a copy. The addresses
/// they were at become reserved. False, and nothing moved, where the system refuses.
bool move_pages(void *from, size_t size_bytes, void *to);

/// Gives a part of a file's memory back; it reads as zeros. False where its system cannot.
bool punch_hole(int file, size_t offset_bytes, size_t size_bytes);
/// Makes a file longer; false when refused.
bool extend_file(int file, size_t size_bytes);

} // namespace tightship::os
