#include "tightship/resource/live_blocks.hpp"

#include <algorithm>

namespace tightship::resource {

bool LiveBlocks::add(void *pointer, size_t size_bytes, size_t alignment, std::string origin) {
    const auto start = reinterpret_cast<uintptr_t>(pointer);
    const std::lock_guard lock(mutex_);
    try {
        blocks_.insert_or_assign(
            start, LiveBlock{start, size_bytes, alignment, last_number_ + 1, std::move(origin)});
    } catch (const std::bad_alloc &) {
        return false;
    }
    ++last_number_;
    size_bytes_ += size_bytes;
    return true;
}

Freed LiveBlocks::remove(void *pointer, size_t size_bytes, size_t alignment, LiveBlock &removed) {
    const auto start = reinterpret_cast<uintptr_t>(pointer);
    const std::lock_guard lock(mutex_);
    const auto found = find(start);
    if (found == blocks_.end())
        return Freed::foreign;
    const LiveBlock &block = found->second;
    if (block.start != start)
        return Freed::not_a_block;
    if (block.size_bytes != size_bytes)
        return Freed::wrong_size;
    if (block.alignment != alignment)
        return Freed::wrong_alignment;
    removed = std::move(blocks_.extract(found).mapped());
    size_bytes_ -= size_bytes;
    return Freed::done;
}

void LiveBlocks::restore(LiveBlock block) {
    const std::lock_guard lock(mutex_);
    size_bytes_ += block.size_bytes;
    blocks_.insert_or_assign(block.start, std::move(block));
}

LiveBlocks::Blocks::const_iterator LiveBlocks::find(uintptr_t address) const {
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin())
        return blocks_.end();
    const auto found = std::prev(after);
    return address - found->first < found->second.size_bytes ? found : blocks_.end();
}

Range LiveBlocks::range_of(const void *pointer) const {
    const std::lock_guard lock(mutex_);
    const auto found = find(reinterpret_cast<uintptr_t>(pointer));
    return found == blocks_.end() ? Range{} : Range{found->first, found->second.size_bytes};
}

size_t LiveBlocks::size_of(const void *pointer) const {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    return found == blocks_.end() ? 0 : found->second.size_bytes;
}

size_t LiveBlocks::size_bytes() const {
    const std::lock_guard lock(mutex_);
    return size_bytes_;
}

size_t LiveBlocks::count() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size();
}

std::vector<LiveBlock> LiveBlocks::all() const {
    std::vector<LiveBlock> blocks;
    {
        const std::lock_guard lock(mutex_);
        for (const auto &[start, block] : blocks_)
            blocks.push_back(block);
    }
    std::ranges::sort(blocks, {}, &LiveBlock::number);
    return blocks;
}

} // namespace tightship::resource
