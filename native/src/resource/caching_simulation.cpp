#include "tightship/resource/caching_simulation.hpp"

#include <algorithm>

namespace tightship::resource {

namespace {

constexpr size_t kSmallMax = size_t{1} << 20;
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kSharedMax = size_t{10} << 20;
constexpr size_t kSharedSegment = size_t{20} << 20;
constexpr size_t kOwnGrain = size_t{2} << 20;

size_t segment_bytes(size_t size_bytes) {
    if (size_bytes <= kSmallMax)
        return kSmallSegment;
    return size_bytes < kSharedMax ? kSharedSegment : align_up(size_bytes, kOwnGrain);
}

} // namespace

void *CachingSimulation::allocate(size_t size_bytes, size_t alignment) {
    const size_t asked = align_up(std::max<size_t>(size_bytes, 1), kUnit);
    if (asked == 0 || segment_bytes(asked) == 0 || alignment > kUnit)
        return nullptr;
    const bool is_small = asked <= kSmallMax;
    const std::lock_guard lock(mutex_);
    const auto found = free_[is_small].lower_bound({asked, 0});
    Blocks::iterator block;
    if (found != free_[is_small].end()) {
        block = blocks_.find(found->second);
        free_[is_small].erase(found);
    } else {
        block = add_segment(segment_bytes(asked), is_small);
        if (block == blocks_.end())
            return nullptr;
    }
    block->second.asked_bytes = std::max<size_t>(size_bytes, 1);
    cut(block, asked);
    current_bytes_ += block->second.size_bytes;
    ++current_count_;
    return reinterpret_cast<void *>(block->first);
}

CachingSimulation::Blocks::iterator CachingSimulation::add_segment(size_t size_bytes,
                                                                   bool is_small) {
    try {
        segments_.push_back(std::make_unique<Chunk>(host_, size_bytes, kUnit));
    } catch (const Refused &) {
        return blocks_.end();
    }
    held_bytes_ += size_bytes;
    const auto start = reinterpret_cast<uintptr_t>(segments_.back()->start());
    return blocks_.emplace(start, Block{size_bytes, start, is_small, 0}).first;
}

/// Leaves `block` its first bytes where the rest is worth a block.
void CachingSimulation::cut(Blocks::iterator block, size_t size_bytes) {
    auto &[start, facts] = *block;
    const size_t rest = facts.size_bytes - size_bytes;
    if (facts.is_small ? rest < kUnit : rest <= kSmallMax)
        return;
    facts.size_bytes = size_bytes;
    blocks_.emplace_hint(std::next(block), start + size_bytes,
                         Block{rest, facts.segment, facts.is_small, 0});
    free_[facts.is_small].emplace(rest, start + size_bytes);
}

Freed CachingSimulation::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    const std::lock_guard lock(mutex_);
    auto block = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    if (block == blocks_.end())
        return Freed::foreign;
    if (block->second.asked_bytes == 0)
        return Freed::already_free;
    if (std::max<size_t>(size_bytes, 1) != block->second.asked_bytes)
        return Freed::wrong_size;
    if (!is_aligned(pointer, alignment))
        return Freed::wrong_alignment;
    current_bytes_ -= block->second.size_bytes;
    --current_count_;
    block->second.asked_bytes = 0;
    Free &free = free_[block->second.is_small];
    const auto joins = [&](Blocks::iterator other) {
        return other->second.asked_bytes == 0 && other->second.segment == block->second.segment;
    };
    if (const auto next = std::next(block); next != blocks_.end() && joins(next)) {
        free.erase({next->second.size_bytes, next->first});
        block->second.size_bytes += next->second.size_bytes;
        blocks_.erase(next);
    }
    if (block != blocks_.begin() && joins(std::prev(block))) {
        const auto before = std::prev(block);
        free.erase({before->second.size_bytes, before->first});
        before->second.size_bytes += block->second.size_bytes;
        blocks_.erase(block);
        block = before;
    }
    free.emplace(block->second.size_bytes, block->first);
    return Freed::done;
}

size_t CachingSimulation::size_of(const void *pointer) const {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    return block == blocks_.end() ? 0 : block->second.asked_bytes;
}

Range CachingSimulation::range_of(const void *pointer) const {
    const std::lock_guard lock(mutex_);
    for (const auto &segment : segments_) {
        const Range range{reinterpret_cast<uintptr_t>(segment->start()), segment->size_bytes()};
        if (range.contains(pointer))
            return range;
    }
    return {};
}

Statistics CachingSimulation::statistics() const {
    const std::lock_guard lock(mutex_);
    return {current_bytes_, current_count_, held_bytes_, held_bytes_};
}

} // namespace tightship::resource
