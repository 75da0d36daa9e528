#include "tightship/resource/adaptor/fallback.hpp"

#include <algorithm>

namespace tightship::resource {

FallbackResource::FallbackResource(std::shared_ptr<MemoryResource> first,
                                   std::shared_ptr<MemoryResource> second)
    : Adaptor(std::move(first)), second_(std::move(second)) {
    if (upstream() == second_)
        throw Misuse("`first` and `second` are the same resource, which has no more the second "
                     "time. Give two.");
}

void *FallbackResource::from_second(size_t size_bytes, size_t alignment) {
    void *pointer = second_->allocate(size_bytes, alignment);
    if (pointer == nullptr)
        return nullptr;
    const size_t asked = std::max<size_t>(size_bytes, 1);
    if (!seconds_.add(pointer, asked, alignment)) {
        give_back(*second_, pointer, size_bytes, alignment);
        return nullptr;
    }
    const auto start = reinterpret_cast<uintptr_t>(pointer);
    uintptr_t lowest = lowest_, highest = highest_;
    while (start < lowest && !lowest_.compare_exchange_weak(lowest, start)) {
    }
    while (start + asked > highest && !highest_.compare_exchange_weak(highest, start + asked)) {
    }
    return pointer;
}

Freed FallbackResource::to_either(void *pointer, size_t size_bytes, size_t alignment) {
    LiveBlock block;
    const size_t asked = std::max<size_t>(size_bytes, 1);
    Freed freed = seconds_.remove(pointer, asked, alignment, block);
    if (freed == Freed::foreign)
        return to_first(pointer, size_bytes, alignment);
    if (freed != Freed::done)
        return freed;
    freed = second_->deallocate(pointer, size_bytes, alignment);
    if (freed != Freed::done)
        seconds_.restore(std::move(block));
    return freed;
}

size_t FallbackResource::allocate_many(void **blocks, size_t count, size_t size_bytes,
                                       size_t alignment) {
    size_t given = upstream()->allocate_many(blocks, count, size_bytes, alignment);
    for (; given < count; ++given)
        if ((blocks[given] = from_second(size_bytes, alignment)) == nullptr)
            break;
    return given;
}

FreedMany FallbackResource::deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                                            size_t alignment) {
    const auto may_be = [this](const void *block) { return may_be_second(block); };
    if (std::none_of(blocks, blocks + count, may_be))
        return upstream()->deallocate_many(blocks, count, size_bytes, alignment);
    return MemoryResource::deallocate_many(blocks, count, size_bytes, alignment);
}

Range FallbackResource::range_of(const void *pointer) const {
    if (is_second(pointer))
        return second_->range_of(pointer);
    const Range range = upstream()->range_of(pointer);
    return range.contains(pointer) ? range : second_->range_of(pointer);
}

Reach FallbackResource::reach() const {
    const Reach first = upstream()->reach(), second = second_->reach();
    return {std::max(first.size_bytes, second.size_bytes),
            std::max(first.alignment, second.alignment)};
}

bool FallbackResource::supports_free() const {
    return upstream()->supports_free() && second_->supports_free();
}

bool FallbackResource::is_shared() const {
    return upstream()->is_shared() || second_->is_shared();
}

Statistics FallbackResource::statistics() const {
    Statistics sum = upstream()->statistics();
    const Statistics second = second_->statistics();
    sum.current_bytes += second.current_bytes;
    sum.current_count += second.current_count;
    sum.reserved_bytes += second.reserved_bytes;
    sum.touched_bytes += second.touched_bytes;
    return sum;
}

size_t FallbackResource::discard(void *start, size_t size_bytes) {
    return (is_second(start) ? second_ : upstream())->discard(start, size_bytes);
}

std::string FallbackResource::refusal(size_t size_bytes, size_t alignment) const {
    return "of the first resource, " + upstream()->refusal(size_bytes, alignment) +
           " Of the second, " + second_->refusal(size_bytes, alignment);
}

size_t FallbackResource::available_bytes() const {
    const size_t first = upstream()->available_bytes(), second = second_->available_bytes();
    return second > SIZE_MAX - first ? SIZE_MAX : first + second;
}

} // namespace tightship::resource
