/// Memory of the operating system; only this file and `map.hpp` ask for it.
#pragma once

#include <cstddef>
#include <string>

namespace tightship::os {

/// Size in bytes of a huge page, if the system has them.
constexpr size_t kHugePage = size_t{2} << 20;

size_t page_size();

/// Maps anonymous, private, zeroed pages; `size_bytes` and `alignment` are multiples of the page
/// size. Asks the system for huge pages if the range spans them, because streaming weights then
/// misses the TLB 512 times less. Returns null if the system refuses.
void *map(size_t size_bytes, size_t alignment);

/// Returns whether the system would grant `size_bytes` more now; nothing is reserved.
bool has_room(size_t size_bytes);

/// Returns the processor that the calling thread runs on now; 0 if the system does not say.
unsigned current_cpu();

/// Unmaps a range. REQUIRES: `map` or `map_file` returned the range.
void unmap(void *pointer, size_t size_bytes);

/// Drops the whole pages of a range, which are zeros when they are touched again; returns their
/// bytes, 0 if the system keeps them. REQUIRES: private pages of `map`.
size_t discard(void *start, size_t size_bytes);

bool has_node(int node);
/// Makes pages that are not resident yet come from a NUMA node while it has free memory.
void prefer_node(void *pointer, size_t size_bytes, int node);
/// Makes all pages of a range resident.
void fill(void *pointer, size_t size_bytes);
/// Keeps pages in memory; false if the process may not lock so many.
bool lock(void *pointer, size_t size_bytes);

/// Lets whole pages be read and written, or forbids every access; false if the system refuses.
bool protect(void *pointer, size_t size_bytes, bool is_open);

/// Creates a file of zeros without a name, in memory or in a folder, with its space allocated; -1
/// if refused.
int memory_file(size_t size_bytes);
int unnamed_file(const std::string &folder, size_t size_bytes);
void close_file(int file);
/// Maps a file's bytes so that writes go to the file; otherwise as `map`.
void *map_file(int file, size_t size_bytes, size_t alignment);

/// Prepares `thread_barrier` for the process; false if the system has none.
bool register_thread_barrier();

/// Runs a full memory barrier on every running thread of the process before it returns. REQUIRES:
/// `register_thread_barrier` returned true in this process.
void thread_barrier();

/// Drops the resident pages of the code that a file brought into the process. They are clean, and
/// come back from the file as they run, in small ranges (`map_finely`). Writable mappings are left
/// alone.
void release_code(const std::string &path);

/// Gives whole free pages of the heap back to the system, wherever they are.
void release_heap();
/// Makes every thread allocate from one heap. By default threads have heaps of their own, whose
/// ends `release_heap` does not give back. Threads that have allocated before keep their heaps.
void use_one_heap();
/// Returns the bytes that the heap has from the system, in use or not; 0 if the C library does not
/// say.
size_t heap_bytes();

} // namespace tightship::os
