#include "tightship/resource/adaptor/failing.hpp"

namespace tightship::resource {

FailingResource::FailingResource(std::shared_ptr<MemoryResource> upstream, uint64_t first,
                                 uint64_t count)
    : Adaptor(std::move(upstream)), first_(first), count_(count) {}

void *FailingResource::allocate(size_t size_bytes, size_t alignment) {
    return refuses(++allocation_count_) ? nullptr : upstream()->allocate(size_bytes, alignment);
}

std::string FailingResource::refusal(size_t size_bytes, size_t alignment) const {
    const uint64_t number = allocation_count_;
    if (!refuses(number))
        return upstream()->refusal(size_bytes, alignment);
    return "allocation " + std::to_string(number) + " is one that was to fail.";
}

void *FailureCallbackResource::allocate(size_t size_bytes, size_t alignment) {
    void *pointer = upstream()->allocate(size_bytes, alignment);
    while (pointer == nullptr && callback_(size_bytes))
        pointer = upstream()->allocate(size_bytes, alignment);
    return pointer;
}

} // namespace tightship::resource
