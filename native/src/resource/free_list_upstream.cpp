/// Requests of a free list to its upstream, and memory that goes back to it.
#include "tightship/resource/free_list.hpp"

#include <algorithm>
#include <vector>

namespace tightship::resource {

namespace {

/// Size below which free blocks keep their pages, because they are requested again soon.
constexpr size_t kDiscardedBytesMin = size_t{64} << 10;

} // namespace

/// Returns the coalescing range at an address; makes it from the range that the address lies in, or
/// from the chunk that begins there.
CoalescingRange &FreeListResource::coalescing_range_of(uintptr_t start, Range range, Asked asked) {
    if (CoalescingRange *known = find(start))
        return *known;
    if (joins_all_) {
        const uintptr_t from = align_up(range.start, kFreeGranule);
        const size_t bytes = range.start + range.size_bytes - from;
        return coalescing_ranges_.try_emplace(from, from, bytes).first->second;
    }
    CoalescingRange &made =
        coalescing_ranges_.try_emplace(start, start, asked.size_bytes).first->second;
    made.chunk_bytes = asked.size_bytes;
    made.chunk_alignment = asked.alignment;
    return made;
}

/// Allocates at the end of upstream's memory if that ends with a free block that is too small: only
/// the missing bytes come from upstream. Otherwise that block would stay unused, and a program
/// whose requests grow would hold the sum of them.
void *FreeListResource::from_longer_end(const Request &request) {
    const auto &[asked_bytes, size_bytes, alignment] = request;
    uintptr_t stop;
    size_t missing_bytes;
    {
        const std::lock_guard lock(lock_);
        put_latest_away();
        stop = stop_;
        const CoalescingRange *coalescing_range =
            stop == 0 || is_abandoned_ ? nullptr : find(stop - 1);
        const FreeNode *last =
            coalescing_range ? coalescing_range->before(coalescing_range->granule(stop)) : nullptr;
        if (last == nullptr)
            return nullptr;
        missing_bytes = align_up(address_of(last), alignment) + size_bytes - stop;
    }
    if (missing_bytes > size_bytes + alignment ||
        !upstream_->allocate_at(reinterpret_cast<void *>(stop), missing_bytes))
        return nullptr;
    const std::lock_guard lock(lock_);
    put_latest_away();
    stop_ = stop + missing_bytes;
    join(*find(stop - 1), stop, missing_bytes);
    return take(request);
}

/// Returns whether upstream may have enough memory once it gets free chunks back, each too small
/// alone.
bool FreeListResource::would_help_upstream(size_t size_bytes) const {
    const size_t left_bytes = upstream_->available_bytes();
    return !settings_.upstream_first && left_bytes != SIZE_MAX &&
           size_bytes <= left_bytes + std::min(free_bytes(), SIZE_MAX - left_bytes);
}

/// Obtains a block from upstream; bytes beyond the request go to the list.
void *FreeListResource::from_upstream(const Request &request) {
    const auto &[asked_bytes, size_bytes, alignment] = request;
    size_t chunk_bytes = std::max(size_bytes, block_bytes(settings_.chunk_bytes));
    void *pointer = upstream_->allocate(chunk_bytes, alignment);
    if (pointer == nullptr && chunk_bytes > size_bytes)
        pointer = upstream_->allocate(chunk_bytes = size_bytes, alignment);
    if (pointer == nullptr && would_help_upstream(size_bytes) && trim() > 0)
        pointer = upstream_->allocate(size_bytes, alignment);
    if (pointer == nullptr)
        return nullptr;
    const Range range = joins_all_ ? upstream_->range_of(pointer) : Range{};
    const uintptr_t start = address_of(pointer);
    std::unique_lock lock(lock_);
    CoalescingRange *made = nullptr;
    try {
        made = &coalescing_range_of(start, range, {chunk_bytes, alignment});
    } catch (const std::bad_alloc &) { // no memory for its record
        lock.unlock();
        upstream_->deallocate(pointer, chunk_bytes, alignment);
        return nullptr;
    }
    CoalescingRange &coalescing_range = *made;
    count_live(coalescing_range, start, request);
    if (joins_all_)
        stop_ = start + chunk_bytes;
    if (chunk_bytes > size_bytes)
        insert(coalescing_range, start + size_bytes, chunk_bytes - size_bytes);
    return pointer;
}

/// Takes in a block that upstream gave to another caller.
Freed FreeListResource::settle(void *pointer, size_t size_bytes, size_t alignment) {
    const Range range = upstream_->range_of(pointer);
    if (!range.contains(pointer))
        return Freed::foreign;
    const uintptr_t start = address_of(pointer);
    const size_t size_max = upstream_->size_of(pointer);
    const size_t bytes = size_bytes / kFreeGranule * kFreeGranule;
    if (size_max == 0 || start % kFreeGranule != 0)
        return Freed::not_a_block;
    if (bytes == 0 || size_bytes > size_max || (!joins_all_ && size_bytes != size_max))
        return Freed::wrong_size;
    if (start % alignment != 0)
        return Freed::wrong_alignment;
    const std::lock_guard lock(lock_);
    if (is_abandoned_)
        return Freed::foreign;
    CoalescingRange &coalescing_range = coalescing_range_of(start, range, {size_bytes, alignment});
    const size_t first = coalescing_range.granule(start);
    if (!coalescing_range.is_clear(first, first + bytes / kFreeGranule))
        return Freed::not_a_block;
    put_back(coalescing_range, start, bytes);
    return Freed::done;
}

size_t FreeListResource::discard_free(MemoryResource &pages) {
    std::vector<FreeNode *> nodes;
    {
        const std::lock_guard lock(lock_);
        put_latest_away();
        while (FreeNode *node = choose(kDiscardedBytesMin, kFreeGranule)) {
            nodes.push_back(node);
            remove(*find(address_of(node)), node);
        }
    }
    size_t bytes = 0;
    for (FreeNode *node : nodes) // the header stays intact, with the size
        bytes += pages.discard(node + 1, node->size_bytes - kFreeGranule);
    const std::lock_guard lock(lock_);
    for (FreeNode *node : nodes)
        join(*find(address_of(node)), address_of(node), node->size_bytes);
    return bytes;
}

size_t FreeListResource::trim() {
    std::vector<CoalescingRange> whole;
    {
        const std::lock_guard lock(lock_);
        put_latest_away();
        for (auto each = coalescing_ranges_.begin(); each != coalescing_ranges_.end();) {
            CoalescingRange &coalescing_range = each->second;
            FreeNode *node = coalescing_range.chunk_bytes > 0 ? coalescing_range.at(0) : nullptr;
            if (node == nullptr || node->size_bytes != coalescing_range.size_bytes()) {
                ++each;
                continue;
            }
            remove(coalescing_range, node);
            whole.push_back(std::move(coalescing_range));
            each = coalescing_ranges_.erase(each);
        }
        last_ = nullptr;
    }
    size_t bytes = 0;
    for (const CoalescingRange &coalescing_range : whole) {
        upstream_->deallocate(reinterpret_cast<void *>(coalescing_range.start),
                              coalescing_range.chunk_bytes, coalescing_range.chunk_alignment);
        bytes += coalescing_range.chunk_bytes;
    }
    return bytes;
}

} // namespace tightship::resource
