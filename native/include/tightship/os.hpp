/// The only file that asks the operating system for memory.
#pragma once

#include <cstddef>

namespace tightship::os {

size_t page_size();

/// Anonymous, private, zeroed pages; `size_bytes` a multiple of the page size.
/// Returns null when the system refuses.
void *map(size_t size_bytes);

/// REQUIRES: the range is what `map` returned.
void unmap(void *pointer, size_t size_bytes);

} // namespace tightship::os
