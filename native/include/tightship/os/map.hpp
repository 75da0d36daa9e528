/// Address space and the pages that back it. Only this file and `os.hpp` map memory. Functions that
/// add a mapping ask `may_map` first; those that may cut a mapping in two leave this to their
/// caller.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tightship::os {

/// Reserves addresses without memory, at a multiple of `alignment`; null if the system refuses.
void *reserve(size_t size_bytes, size_t alignment);
/// Reserves whole pages for `protect` to open, when the system counts them as the process's memory,
/// and to close again once they are discarded. Uses huge pages if the range spans them.
void *reserve_pages(size_t size_bytes);
/// Reserves, as `reserve` does, exactly the addresses at `wanted`; false if something is mapped
/// there.
bool reserve_at(void *wanted, size_t size_bytes);
void release(void *pointer, size_t size_bytes);

/// Maps zeroed private pages in place of reserved addresses, huge ones if the range spans them.
/// False if the system would not let the process map so much at once.
bool commit(void *pointer, size_t size_bytes);
/// Maps a file's bytes in place of reserved addresses; writes go to the file.
bool commit_file(void *pointer, size_t size_bytes, int file, size_t offset_bytes);
/// Maps a file's bytes, to be read only, in place of any mapping.
bool show_file(void *pointer, size_t size_bytes, int file, size_t offset_bytes);
/// Maps private zeros, to be read only, in place of any mapping; `protect` opens them.
bool show_zeros(void *pointer, size_t size_bytes);
/// Keeps huge pages out of a range, so that each page touched takes its own memory alone.
void use_small_pages(void *pointer, size_t size_bytes);
/// Turns mapped pages into reserved addresses again; their contents are lost.
bool decommit(void *pointer, size_t size_bytes);
/// Moves private pages with their contents to reserved addresses, without a copy. The addresses
/// they were at become reserved. False, and nothing moved, if the system refuses.
bool move_pages(void *from, size_t size_bytes, void *to);

/// Gives part of a file's memory back; it then reads as zeros. False if its file system cannot.
bool punch_hole(int file, size_t offset_bytes, size_t size_bytes);
/// Makes a file longer; false if refused.
bool extend_file(int file, size_t size_bytes);

} // namespace tightship::os
