/// Blocks that record their size, for callers that do not pass it when they free one.
#pragma once

#include "tightship/resource/memory_resource.hpp"

namespace tightship::resource {

/// `malloc` and its family over a resource: the size lies in 64 bytes before each block, and blocks
/// are at multiples of 64. `resource` must be the one that a block came from.
namespace sized {

constexpr size_t kAlignment = 64;

/// Allocates a block; null if the resource refuses.
[[nodiscard]] void *allocate(MemoryResource &resource, size_t size_bytes);
/// Allocates `count` elements of `element_bytes` zeros; null if the resource refuses or the product
/// exceeds the largest size.
[[nodiscard]] void *allocate_zeroed(MemoryResource &resource, size_t count, size_t element_bytes);
/// Moves a block to another size, with its contents as far as they fit; null, and the block
/// unchanged, if refused.
[[nodiscard]] void *reallocate(MemoryResource &resource, void *block, size_t size_bytes);
/// Frees a block; does nothing for null.
Freed release(MemoryResource &resource, void *block);

} // namespace sized

} // namespace tightship::resource
