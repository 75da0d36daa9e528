#include "tightship/resource/adaptor/limiting.hpp"

#include <algorithm>

namespace tightship::resource {

LimitingResource::LimitingResource(std::shared_ptr<MemoryResource> upstream, size_t limit_bytes,
                                   std::string setting)
    : Adaptor(std::move(upstream)), limit_bytes_(limit_bytes), setting_(std::move(setting)) {}

bool LimitingResource::admits(size_t size_bytes) {
    size_t current = current_bytes_;
    do {
        if (size_bytes > limit_bytes_ - current)
            return false;
    } while (!current_bytes_.compare_exchange_weak(current, current + size_bytes));
    return true;
}

void *LimitingResource::allocate(size_t size_bytes, size_t alignment) {
    const size_t counted = std::max<size_t>(size_bytes, 1);
    if (!admits(counted))
        return nullptr;
    void *pointer = upstream()->allocate(size_bytes, alignment);
    if (pointer == nullptr)
        current_bytes_ -= counted;
    return pointer;
}

Freed LimitingResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    const Freed freed = upstream()->deallocate(pointer, size_bytes, alignment);
    if (freed == Freed::done)
        current_bytes_ -= std::max<size_t>(size_bytes, 1);
    return freed;
}

Reach LimitingResource::reach() const {
    const Reach whole = upstream()->reach();
    return {std::min(limit_bytes_, whole.size_bytes), whole.alignment};
}

std::string LimitingResource::refusal(size_t size_bytes, size_t alignment) const {
    const size_t current = current_bytes_;
    if (size_bytes <= limit_bytes_ - current)
        return upstream()->refusal(size_bytes, alignment);
    return std::to_string(current) + " of the limit of " + std::to_string(limit_bytes_) +
           " bytes are in use. Raise " + (setting_.empty() ? "the limit" : "`" + setting_ + "`") +
           ", or give blocks back.";
}

size_t LimitingResource::available_bytes() const {
    return std::min(limit_bytes_ - current_bytes_, upstream()->available_bytes());
}

} // namespace tightship::resource
