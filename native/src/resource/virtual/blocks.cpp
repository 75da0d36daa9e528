#include "tightship/resource/virtual/blocks.hpp"

#include <algorithm>
#include <cassert>

namespace tightship::resource {

Block *Blocks::insert(Block block) {
    auto made = std::make_unique<Block>(block);
    Block *const result = made.get();
    by_start_.emplace(block.start, std::move(made));
    in_order_.insert(result);
    if (result->before != nullptr)
        result->before->after = result;
    else
        result->range->first = result;
    if (result->after != nullptr)
        result->after->before = result;
    return result;
}

void Blocks::add(std::unique_ptr<VirtualMemory> addresses, size_t page_bytes) {
    auto range = std::make_unique<AddressRange>();
    const uintptr_t start = addresses->start();
    const size_t size_bytes = addresses->size_bytes() / page_bytes * page_bytes;
    range->addresses = std::move(addresses);
    holes_.insert(insert({.start = start, .size_bytes = size_bytes, .range = range.get()}));
    ranges_.push_back(std::move(range));
}

Block *Blocks::holding(uintptr_t address) const {
    const auto after = in_order_.upper_bound(address);
    if (after == in_order_.begin())
        return nullptr;
    Block *const block = *std::prev(after);
    return address < block->stop() ? block : nullptr;
}

void Blocks::unsettle(Block *block) {
    if (block->state == BlockState::free)
        free_[block->user].erase(block);
    else if (block->state == BlockState::hole)
        holes_.erase(block);
}

Block *Blocks::cut(Block *block, uintptr_t start, size_t size_bytes) {
    unsettle(block);
    const uintptr_t first = block->start, stop = block->stop();
    assert(first <= start && start + size_bytes <= stop);
    Block part = *block;
    block->state = BlockState::live; // so that the rest does not join it again
    if (stop > start + size_bytes) {
        part.start = start + size_bytes;
        part.size_bytes = stop - part.start;
        part.before = block;
        block->size_bytes -= part.size_bytes;
        settle(insert(part));
    }
    if (start == first)
        return block;
    Block middle = *block;
    middle.start = start;
    middle.size_bytes = size_bytes;
    middle.before = block;
    Block *const made = insert(middle);
    block->size_bytes = start - first;
    block->state = part.state;
    settle(block);
    return made;
}

Block *Blocks::join(Block *first, Block *second) {
    first->size_bytes += second->size_bytes;
    first->epoch = std::max(first->epoch, second->epoch);
    first->after = second->after;
    if (first->after != nullptr)
        first->after->before = first;
    in_order_.erase(second);
    by_start_.erase(uintptr_t{second->start});
    return first;
}

Block *Blocks::settle(Block *block) {
    const auto is_like = [](const Block *a, const Block *b) {
        return a != nullptr && b != nullptr && a->state == b->state && a->user == b->user;
    };
    assert(block->state == BlockState::free || block->state == BlockState::hole);
    if (is_like(block->before, block)) {
        unsettle(block->before);
        block = join(block->before, block);
    }
    if (is_like(block, block->after)) {
        unsettle(block->after);
        block = join(block, block->after);
    }
    if (block->state == BlockState::free)
        free_[block->user].insert(block);
    else
        holes_.insert(block);
    return block;
}

bool Blocks::release_done() {
    std::vector<Block *> done;
    for (auto &[user, blocks] : free_)
        for (Block *block : blocks)
            if (user != nullptr && user->is_done(block->epoch))
                done.push_back(block);
    // Joining may end blocks further on in the list, so blocks are found again by their start.
    std::vector<uintptr_t> starts;
    for (const Block *block : done)
        starts.push_back(block->start);
    for (const uintptr_t start : starts) {
        Block *const block = find(start);
        if (block == nullptr || block->state != BlockState::free || block->user == nullptr ||
            !block->user->is_done(block->epoch))
            continue;
        unsettle(block);
        block->user = nullptr;
        block->epoch = 0;
        settle(block);
    }
    return !done.empty();
}

} // namespace tightship::resource
