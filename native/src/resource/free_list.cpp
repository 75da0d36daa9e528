#include "tightship/resource/free_list.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tightship::resource {

namespace {

/// Blocks tried for an aligned one, if none is large enough at any alignment.
constexpr int kCandidates = 64;

/// Size from which a freed block joins its neighbours at once: if it lay alone, the next request
/// would be cut from a still larger block.
constexpr size_t kLatestBytesMax = (size_t{1} << 20) + (size_t{4} << 10);

/// Returns whether a free block holds `size_bytes` at a multiple of `alignment`.
bool holds(const FreeNode *node, size_t size_bytes, size_t alignment) {
    const size_t skipped = align_up(address_of(node), alignment) - address_of(node);
    return skipped <= node->size_bytes && size_bytes <= node->size_bytes - skipped;
}

} // namespace

FreeListResource::FreeListResource(std::shared_ptr<MemoryResource> upstream, Settings settings)
    : upstream_(std::move(upstream)), settings_(settings), joins_all_(!upstream_->supports_free()) {
    const size_t largest_bytes = upstream_->reach().size_bytes;
    if (settings_.chunk_bytes > largest_bytes)
        throw Misuse("`chunk_bytes` (= " + std::to_string(settings_.chunk_bytes) +
                     ") is more than `upstream` ever gives: " + std::to_string(largest_bytes) +
                     " bytes.");
}

FreeListResource::~FreeListResource() {
    for (const auto &[start, coalescing_range] : coalescing_ranges_)
        if (coalescing_range.chunk_bytes > 0)
            give_back(*upstream_, reinterpret_cast<void *>(start), coalescing_range.chunk_bytes,
                      coalescing_range.chunk_alignment);
}

void *FreeListResource::allocate(size_t size_bytes, size_t alignment) {
    const Request request = request_of(size_bytes, alignment);
    if (!can_be_met(request))
        return nullptr;
    if (settings_.upstream_first)
        if (void *pointer = from_upstream(request))
            return pointer;
    {
        const std::lock_guard lock(lock_);
        if (is_abandoned_)
            return nullptr;
        if (void *pointer = take(request))
            return pointer;
    }
    if (settings_.upstream_first)
        return nullptr;
    if (void *pointer = from_longer_end(request))
        return pointer;
    return from_upstream(request);
}

size_t FreeListResource::allocate_many(void **blocks, size_t count, size_t size_bytes,
                                       size_t alignment) {
    const Request request = request_of(size_bytes, alignment);
    size_t given = 0;
    if (!settings_.upstream_first && can_be_met(request)) {
        const std::lock_guard lock(lock_);
        while (given < count && !is_abandoned_) {
            blocks[given] = take(request);
            if (blocks[given] == nullptr)
                break;
            ++given;
        }
    }
    return given +
           MemoryResource::allocate_many(blocks + given, count - given, size_bytes, alignment);
}

/// Takes the most recently freed block if it is exactly what is requested, without cutting or
/// joining.
void *FreeListResource::take_latest(const Request &request) {
    if (latest_.size_bytes != request.size_bytes || latest_.start % request.alignment != 0)
        return nullptr;
    latest_.size_bytes = 0;
    free_bytes_ -= request.size_bytes;
    count_live(*latest_.coalescing_range, latest_.start, request);
    return reinterpret_cast<void *>(latest_.start);
}

void FreeListResource::count_live(CoalescingRange &coalescing_range, uintptr_t start,
                                  const Request &request) {
    coalescing_range.live.set(coalescing_range.granule(start), request.asked_bytes);
    live_bytes_ += request.size_bytes;
    ++live_count_;
}

void FreeListResource::put_latest_away() {
    const size_t size_bytes = std::exchange(latest_.size_bytes, 0);
    if (size_bytes == 0)
        return;
    free_bytes_ -= size_bytes;
    join(*latest_.coalescing_range, latest_.start, size_bytes);
}

/// Cuts a block out of a free one; the rest on either side stays free.
void *FreeListResource::take(const Request &request) {
    if (void *latest = take_latest(request))
        return latest;
    put_latest_away();
    const size_t size_bytes = request.size_bytes;
    FreeNode *node = choose(size_bytes, request.alignment);
    if (node == nullptr)
        return nullptr;
    const uintptr_t start = address_of(node), stop = start + node->size_bytes;
    const uintptr_t block = align_up(start, request.alignment);
    CoalescingRange &coalescing_range = *find(start);
    remove(coalescing_range, node);
    if (block > start)
        insert(coalescing_range, start, block - start);
    if (stop > block + size_bytes)
        insert(coalescing_range, block + size_bytes, stop - (block + size_bytes));
    count_live(coalescing_range, block, request);
    return reinterpret_cast<void *>(block);
}

FreeNode *FreeListResource::choose(size_t size_bytes, size_t alignment) const {
    if (settings_.fit == Fit::first)
        return choose_first(size_bytes, alignment);
    FreeNode *node = bins_.best(size_bytes);
    if (node == nullptr || holds(node, size_bytes, alignment))
        return node;
    for (int looked = 0; node != nullptr && looked < kCandidates; ++looked) {
        if (holds(node, size_bytes, alignment))
            return node;
        node = node->size_bytes < SizeBins::kListedBytes && node->next != nullptr
                   ? node->next
                   : bins_.best(node->size_bytes + kFreeGranule);
    }
    node = bins_.best(size_bytes + alignment - kFreeGranule);
    return node;
}

FreeNode *FreeListResource::choose_first(size_t size_bytes, size_t alignment) const {
    FreeNode *node = chain_.head();
    while (node != nullptr && !holds(node, size_bytes, alignment))
        node = node->next;
    return node;
}

Freed FreeListResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    {
        const std::lock_guard lock(lock_);
        if (is_abandoned_)
            return Freed::foreign;
        if (CoalescingRange *coalescing_range = find(address_of(pointer))) {
            const Freed freed = give(*coalescing_range, address_of(pointer), size_bytes, alignment);
            if (freed != Freed::not_a_block || !joins_all_) [[likely]]
                return freed;
        }
    }
    return settle(pointer, size_bytes, alignment);
}

FreedMany FreeListResource::deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                                            size_t alignment) {
    FreedMany freed;
    std::vector<void *> unsettled;
    {
        const std::lock_guard lock(lock_);
        for (size_t index = 0; index < count; ++index) {
            const uintptr_t start = address_of(blocks[index]);
            CoalescingRange *coalescing_range = is_abandoned_ ? nullptr : find(start);
            const Freed each = coalescing_range == nullptr
                                   ? Freed::not_a_block
                                   : give(*coalescing_range, start, size_bytes, alignment);
            if (each == Freed::not_a_block && (coalescing_range == nullptr || joins_all_))
                unsettled.push_back(blocks[index]);
            else
                freed.note(each, blocks[index]);
        }
    }
    freed.note(
        MemoryResource::deallocate_many(unsettled.data(), unsettled.size(), size_bytes, alignment));
    return freed;
}

/// Takes a block back that lies in a coalescing range.
Freed FreeListResource::give(CoalescingRange &coalescing_range, uintptr_t start, size_t size_bytes,
                             size_t alignment) {
    const size_t first = coalescing_range.granule(start),
                 asked_bytes = std::max<size_t>(size_bytes, 1);
    if ((start - coalescing_range.start) % kFreeGranule != 0 || start % alignment != 0 ||
        !coalescing_range.live.is(first, asked_bytes)) [[unlikely]]
        return fault_of(coalescing_range, start, asked_bytes);
    const size_t bytes = block_bytes(asked_bytes);
    coalescing_range.live.clear(first);
    --live_count_;
    live_bytes_ -= bytes;
    put_back(coalescing_range, start, bytes);
    return Freed::done;
}

/// Returns why no live block of that size and a given alignment begins at an address.
Freed FreeListResource::fault_of(const CoalescingRange &coalescing_range, uintptr_t start,
                                 size_t size_bytes) {
    put_latest_away();
    const size_t first = coalescing_range.granule(start);
    if ((start - coalescing_range.start) % kFreeGranule != 0)
        return Freed::not_a_block;
    if (const size_t live_bytes = coalescing_range.live.at(first); live_bytes != 0)
        return live_bytes == size_bytes ? Freed::wrong_alignment : Freed::wrong_size;
    return coalescing_range.is_free(first) ? Freed::already_free : Freed::not_a_block;
}

size_t FreeListResource::size_of(const void *pointer) const {
    {
        const std::lock_guard lock(lock_);
        const auto after = coalescing_ranges_.upper_bound(address_of(pointer));
        if (after != coalescing_ranges_.begin()) {
            const CoalescingRange &found = std::prev(after)->second;
            const size_t offset = address_of(pointer) - found.start;
            if (offset < found.size_bytes())
                return offset % kFreeGranule == 0 ? found.live.at(offset / kFreeGranule) : 0;
        }
    }
    return upstream_->size_of(pointer);
}

/// Adds a block that is free from now on.
void FreeListResource::put_back(CoalescingRange &coalescing_range, uintptr_t start,
                                size_t size_bytes) {
    put_latest_away();
    if (size_bytes <= kLatestBytesMax) {
        latest_ = {&coalescing_range, start, size_bytes};
        free_bytes_ += size_bytes;
    } else {
        join(coalescing_range, start, size_bytes);
    }
}

/// Joins a free block with the free blocks beside it.
void FreeListResource::join(CoalescingRange &coalescing_range, uintptr_t start, size_t size_bytes) {
    uintptr_t stop = start + size_bytes;
    if (FreeNode *next = coalescing_range.at(coalescing_range.granule(stop))) {
        stop += next->size_bytes;
        remove(coalescing_range, next);
    }
    if (FreeNode *previous = coalescing_range.before(coalescing_range.granule(start))) {
        start = address_of(previous);
        remove(coalescing_range, previous);
    }
    insert(coalescing_range, start, stop - start);
}

void FreeListResource::insert(CoalescingRange &coalescing_range, uintptr_t start,
                              size_t size_bytes) {
    auto *node = reinterpret_cast<FreeNode *>(start);
    node->size_bytes = size_bytes;
    node->footer() = size_bytes;
    coalescing_range.mark(node);
    free_bytes_ += size_bytes;
    ++free_count_;
    if (settings_.fit == Fit::first)
        chain_.push(node);
    else
        bins_.insert(node);
}

void FreeListResource::remove(CoalescingRange &coalescing_range, FreeNode *node) {
    if (settings_.fit == Fit::first)
        chain_.remove(node);
    else
        bins_.remove(node);
    coalescing_range.unmark(node);
    free_bytes_ -= node->size_bytes;
    --free_count_;
}

CoalescingRange *FreeListResource::find(uintptr_t address) {
    if (last_ != nullptr && last_->contains(address))
        return last_;
    const auto after = coalescing_ranges_.upper_bound(address);
    if (after == coalescing_ranges_.begin())
        return nullptr;
    CoalescingRange &found = std::prev(after)->second;
    return found.contains(address) ? last_ = &found : nullptr;
}

Statistics FreeListResource::statistics() const {
    const std::lock_guard lock(lock_);
    const size_t held_bytes = live_bytes_ + free_bytes_;
    return {live_bytes_, live_count_, held_bytes, held_bytes};
}

size_t FreeListResource::free_bytes() const {
    const std::lock_guard lock(lock_);
    return free_bytes_;
}

size_t FreeListResource::free_count() {
    const std::lock_guard lock(lock_);
    put_latest_away();
    return free_count_;
}

size_t FreeListResource::available_bytes() const {
    const size_t above = upstream_->available_bytes();
    return above == SIZE_MAX ? SIZE_MAX : above + free_bytes();
}

std::string FreeListResource::refusal(size_t size_bytes, size_t alignment) const {
    if (is_abandoned_)
        return "the list lies in shared memory and belongs to the parent process.";
    return "no free block holds it, of " + std::to_string(free_bytes()) +
           " bytes in all, and upstream " + upstream_->refusal(size_bytes, alignment);
}

void FreeListResource::after_fork(bool is_child) {
    is_abandoned_ = is_abandoned_ || (is_child && upstream_->is_shared());
    lock_.unlock();
}

} // namespace tightship::resource
