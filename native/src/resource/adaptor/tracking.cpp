#include "tightship/resource/adaptor/tracking.hpp"

#include <algorithm>

namespace tightship::resource {

void *TrackingResource::allocate(size_t size_bytes, size_t alignment) {
    void *pointer = upstream()->allocate(size_bytes, alignment);
    if (pointer == nullptr)
        return nullptr;
    const size_t counted = std::max<size_t>(size_bytes, 1);
    if (blocks_.add(pointer, counted, alignment, origin_ ? origin_() : std::string()))
        return pointer;
    upstream()->deallocate(pointer, size_bytes, alignment);
    return nullptr;
}

Freed TrackingResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    LiveBlock block;
    const size_t counted = std::max<size_t>(size_bytes, 1);
    Freed freed = blocks_.remove(pointer, counted, alignment, block);
    if (freed == Freed::foreign && upstream()->owns(pointer))
        return Freed::not_a_block;
    if (freed != Freed::done)
        return freed;
    freed = upstream()->deallocate(pointer, size_bytes, alignment);
    if (freed != Freed::done)
        blocks_.restore(std::move(block));
    return freed;
}

} // namespace tightship::resource
