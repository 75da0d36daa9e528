/// The only file that asks the operating system for memory.
#pragma once

#include <cstddef>
#include <string>

namespace tightship::os {

/// What the system makes huge pages of, where it has them.
constexpr size_t kHugePage = size_t{2} << 20;

size_t page_size();

/// Anonymous, private, zeroed pages; `size_bytes` and `alignment` multiples of the page size.
/// Where they span huge pages, the system is asked for these: streaming weights misses the TLB
/// 512 times less. Returns null when the system refuses.
void *map(size_t size_bytes, size_t alignment);

/// Whether the system would give so much more, as of now; nothing is kept of it.
bool has_room(size_t size_bytes);

/// The processor that the calling thread runs on, as of now; 0 where the system does not say.
unsigned current_cpu();

/// REQUIRES: the range is what `map` or `map_file` returned.
void unmap(void *pointer, size_t size_bytes);

/// Drops the whole pages of a range, which are zeros when they are touched again; returns their
/// bytes, 0 where the system keeps them. REQUIRES: private pages of `map`.
size_t discard(void *start, size_t size_bytes);

bool has_node(int node);
/// Has pages that are not there yet come from a NUMA node while it has some.
void prefer_node(void *pointer, size_t size_bytes, int node);
/// Backs pages with memory that are not there yet.
void fill(void *pointer, size_t size_bytes);
/// Keeps pages in memory; false where the process may not lock so many.
bool lock(void *pointer, size_t size_bytes);

/// Has whole pages be written to and read, or not be touched at all; false where it cannot.
bool protect(void *pointer, size_t size_bytes, bool is_open);

/// A new file without a name, of zeros: in memory, or in a folder, its room taken; -1 if refused.
int memory_file(size_t size_bytes);
int unnamed_file(const std::string &folder, size_t size_bytes);
void close_file(int file);
/// A file's bytes, written through to it; as `map` otherwise.
void *map_file(int file, size_t size_bytes, size_t alignment);

/// Prepares `thread_barrier` for the process; false where the system has none.
bool register_thread_barrier();

/// When it returns, every running thread of the process has been through a full memory barrier.
/// REQUIRES: `register_thread_barrier` was true, in this process.
void thread_barrier();

/// Drops the resident pages of the code that a file brought into the process. They are clean, and
/// come back from the file as they run, in small pieces (`map_finely`). Writable mappings are left
/// alone.
void release_code(const std::string &path);

/// Gives whole free pages of the heap back to the system, wherever they are.
void release_heap();
/// Has every thread allocate from one heap. By default threads have heaps of their own, the ends of
/// which `release_heap` does not give back. Threads that have allocated before keep theirs.
void use_one_heap();
/// What the heap has of the system, in use or not; 0 where the C library does not say.
size_t heap_bytes();

} // namespace tightship::os
