#include "tightship/resource/region.hpp"

#include <algorithm>

namespace tightship::resource {

void *RegionResource::allocate(size_t size_bytes, size_t alignment) {
    const size_t asked = std::max<size_t>(size_bytes, 1);
    const uintptr_t start = align_up(range_.start, alignment);
    const size_t skipped = start - range_.start;
    if (skipped > range_.size_bytes || asked > range_.size_bytes - skipped)
        return nullptr;
    uintptr_t none = 0;
    if (!live_.compare_exchange_strong(none, start))
        return nullptr;
    live_bytes_ = asked;
    return reinterpret_cast<void *>(start);
}

Freed RegionResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    if (!range_.contains(pointer))
        return Freed::foreign;
    uintptr_t live = live_;
    if (live == 0)
        return Freed::already_free;
    if (live != reinterpret_cast<uintptr_t>(pointer))
        return Freed::not_a_block;
    if (std::max<size_t>(size_bytes, 1) != live_bytes_)
        return Freed::wrong_size;
    if (!is_aligned(pointer, alignment))
        return Freed::wrong_alignment;
    live_bytes_ = 0;
    return live_.compare_exchange_strong(live, 0) ? Freed::done : Freed::already_free;
}

Statistics RegionResource::statistics() const {
    return {live_bytes_, live_ != 0, range_.size_bytes, live_bytes_};
}

std::string RegionResource::refusal(size_t, size_t) const {
    if (live_ != 0)
        return "the region gives one block at a time, and " + std::to_string(live_bytes_) +
               " bytes of it are given.";
    return "the region has " + std::to_string(range_.size_bytes) + " bytes.";
}

} // namespace tightship::resource
