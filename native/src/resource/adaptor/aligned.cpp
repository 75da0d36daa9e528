#include "tightship/resource/adaptor/aligned.hpp"

#include <algorithm>

namespace tightship::resource {

AlignedResource::AlignedResource(std::shared_ptr<MemoryResource> upstream, size_t alignment,
                                 size_t threshold_bytes)
    : Adaptor(std::move(upstream)), alignment_(alignment), threshold_bytes_(threshold_bytes) {
    const size_t coarsest = this->upstream()->reach().alignment;
    if (alignment > coarsest)
        throw Misuse("`alignment` (= " + std::to_string(alignment) +
                     ") is coarser than `upstream` ever gives: " + std::to_string(coarsest) + ".");
}

size_t AlignedResource::raised(size_t size_bytes, size_t alignment) const {
    return size_bytes < threshold_bytes_ ? alignment : std::max(alignment, alignment_);
}

void *AlignedResource::allocate(size_t size_bytes, size_t alignment) {
    return upstream()->allocate(size_bytes, raised(size_bytes, alignment));
}

Freed AlignedResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    return upstream()->deallocate(pointer, size_bytes, raised(size_bytes, alignment));
}

} // namespace tightship::resource
