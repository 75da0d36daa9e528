#include "tightship/resource/memory_resource.hpp"

#include <cstdint>

namespace tightship::resource {

size_t MemoryResource::allocate_many(void **blocks, size_t count, size_t size_bytes,
                                     size_t alignment) {
    for (size_t index = 0; index < count; ++index) {
        blocks[index] = allocate(size_bytes, alignment);
        if (blocks[index] == nullptr)
            return index;
    }
    return count;
}

FreedMany MemoryResource::deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                                          size_t alignment) {
    FreedMany freed;
    for (size_t index = 0; index < count; ++index)
        freed.note(deallocate(blocks[index], size_bytes, alignment), blocks[index]);
    return freed;
}

size_t MemoryResource::available_bytes() const {
    const Statistics now = statistics();
    return now.reserved_bytes - now.current_bytes;
}

std::string MemoryResource::refusal(size_t, size_t) const {
    const Statistics now = statistics();
    return std::to_string(now.reserved_bytes - now.current_bytes) + " of " +
           std::to_string(now.reserved_bytes) + " bytes are free.";
}

Refused::Refused(const MemoryResource &resource, size_t size_bytes, size_t alignment)
    : message("Cannot allocate " + std::to_string(size_bytes) + " bytes (alignment " +
              std::to_string(alignment) + "): " + resource.refusal(size_bytes, alignment)),
      requested_bytes(size_bytes), available_bytes(resource.available_bytes()) {}

} // namespace tightship::resource
