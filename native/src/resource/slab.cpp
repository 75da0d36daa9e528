#include "tightship/resource/slab.hpp"

#include "tightship/os.hpp"

#include <algorithm>
#include <bit>

namespace tightship::resource {

namespace {

constexpr size_t kLine = 64;

/// Blocks that fit, with their bits before them where these are inside.
size_t count_blocks(size_t size_bytes, size_t block_bytes, size_t alignment, bool is_inside) {
    if (!is_inside)
        return size_bytes / block_bytes;
    size_t most = size_bytes / block_bytes, least = 0;
    while (least < most) {
        const size_t count = least + (most - least + 1) / 2;
        const size_t bits = align_up(FreeBits::size_bytes(count), alignment);
        const bool fits = bits <= size_bytes && count <= (size_bytes - bits) / block_bytes;
        (fits ? least : most) = fits ? count : count - 1;
    }
    return least;
}

} // namespace

SlabResource::SlabResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes,
                           size_t block_bytes, std::shared_ptr<MemoryResource> control)
    : block_bytes_(block_bytes) {
    if (block_bytes == 0 || block_bytes % 8 != 0)
        throw Misuse("`block_bytes` (= " + std::to_string(block_bytes) +
                     ") must be a multiple of 8, and at least 8.");
    alignment_ = std::min(block_bytes & -block_bytes, os::page_size());
    const size_t region_alignment = std::max(alignment_, kLine);
    const bool is_inside = control == nullptr;
    block_count_ = count_blocks(size_bytes, block_bytes, region_alignment, is_inside);
    if (block_count_ == 0)
        throw Misuse("`size_bytes` (= " + std::to_string(size_bytes) + ") has no room for a block" +
                     (is_inside ? " and its bits" : "") + ": `block_bytes` is " +
                     std::to_string(block_bytes) + ".");
    region_.obtain(std::move(upstream), size_bytes, region_alignment);
    const size_t bits_bytes = FreeBits::size_bytes(block_count_);
    start_ = region_.start();
    char *bits = start_;
    if (is_inside) {
        start_ += align_up(bits_bytes, region_alignment);
    } else {
        control_.obtain(std::move(control), bits_bytes, kLine);
        bits = control_.start();
    }
    free_.emplace(bits, block_count_);
}

void *SlabResource::allocate(size_t size_bytes, size_t alignment) {
    if (size_bytes > block_bytes_ || alignment > alignment_)
        return nullptr;
    size_t word = os::current_cpu() * size_t{8} % free_->word_count();
    const uint64_t bit = free_->claim(word, 1);
    return bit == 0 ? nullptr : block(word * 64 + std::countr_zero(bit));
}

Freed SlabResource::deallocate(void *pointer, size_t size_bytes, size_t) {
    const size_t offset = static_cast<char *>(pointer) - start_;
    if (offset >= capacity_bytes())
        return Freed::foreign;
    const size_t index = offset / block_bytes_;
    if (index * block_bytes_ != offset)
        return Freed::not_a_block;
    if (size_bytes > block_bytes_)
        return Freed::wrong_size;
    return free_->release(index / 64, uint64_t{1} << index % 64) == 0 ? Freed::done
                                                                      : Freed::already_free;
}

Range SlabResource::range_of(const void *pointer) const {
    const Range range{reinterpret_cast<uintptr_t>(start_), capacity_bytes()};
    if (!range.contains(pointer))
        return {};
    const size_t offset = reinterpret_cast<uintptr_t>(pointer) - range.start;
    return {range.start + offset / block_bytes_ * block_bytes_, block_bytes_};
}

Statistics SlabResource::statistics() const {
    const size_t live = block_count_ - free_->set_count();
    return {live * block_bytes_, live, capacity_bytes()};
}

std::string SlabResource::refusal(size_t size_bytes, size_t alignment) const {
    if (size_bytes > block_bytes_)
        return "`block_bytes` is " + std::to_string(block_bytes_) + ".";
    if (alignment > alignment_)
        return "blocks of " + std::to_string(block_bytes_) + " bytes are aligned to " +
               std::to_string(alignment_) + ".";
    return "all " + std::to_string(block_count_) + " blocks of " + std::to_string(block_bytes_) +
           " bytes are in use. Give the slab a larger region.";
}

} // namespace tightship::resource
