/// Blocks that know their size, for callers that do not tell it when they give one back.
#pragma once

#include "tightship/resource/memory_resource.hpp"

namespace tightship::resource {

/// `malloc` and its family over a resource: the size lies in 64 bytes before each block, and blocks
/// are at multiples of 64. `resource` is the one that a block came from.
namespace sized {

constexpr size_t kAlignment = 64;

/// Null where the resource refuses.
[[nodiscard]] void *allocate(MemoryResource &resource, size_t size_bytes);
/// `count` elements of `element_bytes` zeros; null as well where their product is no size.
[[nodiscard]] void *allocate_zeroed(MemoryResource &resource, size_t count, size_t element_bytes);
/// Another size with what fits of the contents; null, and the block as it was, where refused.
[[nodiscard]] void *reallocate(MemoryResource &resource, void *block, size_t size_bytes);
/// A null block is none.
Freed release(MemoryResource &resource, void *block);

} // namespace sized

} // namespace tightship::resource
