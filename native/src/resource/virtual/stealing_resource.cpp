#include "tightship/resource/virtual/stealing_resource.hpp"

#include <algorithm>
#include <bit>

namespace tightship::resource {

namespace {

/// Size above which requests are refused.
constexpr size_t kLargestBytes = size_t{1} << 47;
/// Free blocks tried for an aligned one before a larger block is taken.
constexpr int kCandidates = 32;
/// Entries among which the blocks kept for a size are in one.
constexpr size_t kProbes = 4;
/// Calls between two reads of the clock.
constexpr size_t kCallsPerLook = 256;

bool allows(const StreamUse *user, uint64_t epoch, const StreamUse *next) {
    return user == nullptr || user == next || user->is_done(epoch);
}

/// Returns whether a request of `user` may lie over the block.
bool is_open(const Block *block, const StreamUse *user) {
    return block != nullptr &&
           (block->state == BlockState::hole ||
            (block->state == BlockState::free && allows(block->user, block->epoch, user)));
}

} // namespace

StealingVirtualResource::StealingVirtualResource(std::shared_ptr<PagedDevice> device)
    : StealingVirtualResource(std::move(device), Settings{}) {}

StealingVirtualResource::StealingVirtualResource(std::shared_ptr<PagedDevice> device,
                                                 Settings settings)
    : device_(std::move(device)), settings_(settings),
      needed_since_(std::chrono::steady_clock::now()) {
    const size_t granularity = device_->granularity_bytes();
    if (!std::has_single_bit(settings.page_bytes) || settings.page_bytes % granularity != 0 ||
        settings.page_bytes > device_->largest_chunk_bytes())
        throw Misuse("`page_bytes` (= " + std::to_string(settings.page_bytes) +
                     ") must be a power of two, a multiple of " + std::to_string(granularity) +
                     " bytes, the device's granularity, and at most " +
                     std::to_string(device_->largest_chunk_bytes()) + ".");
}

StreamUse *StealingVirtualResource::user_of(const StreamPointer &stream, Departed &departed) {
    if (stream == nullptr)
        return nullptr;
    if (const auto found = users_.find(stream); found != users_.end())
        return &found->second;
    check_stream(*device_, stream);
    if (users_.size() >= stream_limit_) {
        release_all();
        poll(std::chrono::nanoseconds(0));
        forget_streams(departed);
        stream_limit_ = std::max(kStreams, 2 * users_.size());
    }
    return &users_.try_emplace(stream, stream).first->second;
}

/// Forgets streams that no free block waits for. REQUIRES: no block is kept.
void StealingVirtualResource::forget_streams(Departed &departed) {
    for (auto entry = users_.begin(); entry != users_.end();) {
        const auto &[stream, user] = *entry;
        if (!stream->ends_at_once() || !blocks_.forget(&entry->second)) {
            ++entry;
            continue;
        }
        departed.push_back(stream);
        entry = users_.erase(entry);
    }
}

/// Returns the entry of the blocks kept for a size; that of another size if all its entries are
/// taken.
StealingVirtualResource::Kept &StealingVirtualResource::kept_of(size_t size_bytes) {
    const size_t home = size_bytes / kGranule * 0x9E3779B97F4A7C15 >> 58;
    Kept *unused = nullptr;
    for (size_t probe = 0; probe < kProbes; ++probe) {
        Kept &each = kept_[(home + probe) % kept_.size()];
        if (each.size_bytes == size_bytes)
            return each;
        if (unused == nullptr && each.first == nullptr)
            unused = &each;
    }
    return unused != nullptr ? *unused : kept_[home];
}

void *StealingVirtualResource::allocate_on(size_t size_bytes, size_t alignment,
                                           const StreamPointer &stream) {
    Departed departed;
    const auto lock = device_->enter(mutex_);
    const size_t bytes = align_up(std::max<size_t>(size_bytes, 1), kGranule);
    if (is_abandoned_ || bytes < size_bytes || bytes > kLargestBytes || alignment > kLargestBytes)
        return nullptr;
    const Request request{bytes, std::max(alignment, kGranule), user_of(stream, departed)};
    Block *block = take_kept(request);
    if (block != nullptr) {
        ++statistics_.exact_count;
    } else {
        release_all();
        block = take_free(request);
        if (block == nullptr)
            block = take_mapped_or_nothing(request);
        if (block == nullptr)
            return nullptr;
    }
    block->state = BlockState::live;
    block->requested_bytes = size_bytes;
    block->user = nullptr;
    ++live_count_;
    statistics_.requested_bytes += size_bytes;
    statistics_.allocated_bytes += bytes;
    live_bytes_.store(statistics_.allocated_bytes, std::memory_order_relaxed);
    statistics_.peak_allocated_bytes =
        std::max(statistics_.peak_allocated_bytes, statistics_.allocated_bytes);
    needed_bytes_ = std::max(needed_bytes_, statistics_.allocated_bytes);
    ++statistics_.allocation_count;
    if (++call_count_ % kCallsPerLook == 0)
        release_idle();
    events_.note(Action::allocated, block->start, size_bytes);
    return reinterpret_cast<void *>(block->start);
}

Freed StealingVirtualResource::deallocate_on(void *pointer, size_t size_bytes, size_t alignment,
                                             const StreamPointer &stream) {
    Departed departed;
    const auto lock = device_->enter(mutex_);
    Block *const block = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    if (block == nullptr) {
        const Block *const within = blocks_.holding(reinterpret_cast<uintptr_t>(pointer));
        if (within == nullptr || within->state == BlockState::hole)
            return Freed::foreign;
        return within->state == BlockState::live ? Freed::not_a_block : Freed::already_free;
    }
    if (block->state != BlockState::live)
        return block->state == BlockState::hole ? Freed::foreign : Freed::already_free;
    if (block->requested_bytes != size_bytes)
        return Freed::wrong_size;
    if (!is_aligned(pointer, alignment))
        return Freed::wrong_alignment;
    StreamUse *const user = user_of(stream, departed);
    --live_count_;
    statistics_.requested_bytes -= size_bytes;
    statistics_.allocated_bytes -= block->size_bytes;
    live_bytes_.store(statistics_.allocated_bytes, std::memory_order_relaxed);
    block->user = user;
    block->epoch = user != nullptr ? user->epoch() : 0;
    block->state = BlockState::kept;
    events_.note(Action::freed, block->start, size_bytes);
    Kept &kept = kept_of(block->size_bytes);
    if (kept.size_bytes != block->size_bytes) {
        release_block(kept);
        kept.size_bytes = block->size_bytes;
    }
    block->next_kept = kept.first;
    kept.first = block;
    if (++call_count_ % kCallsPerLook == 0)
        release_idle();
    return Freed::done;
}

size_t StealingVirtualResource::size_of(const void *pointer) const {
    const auto lock = device_->enter(mutex_);
    const Block *const block = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    return block != nullptr && block->state == BlockState::live ? block->requested_bytes : 0;
}

Block *StealingVirtualResource::take_kept(const Request &request) {
    Kept &kept = kept_of(request.size_bytes);
    Block *const block = kept.first;
    if (block == nullptr || kept.size_bytes != request.size_bytes ||
        block->start % request.alignment != 0 || !allows(block->user, block->epoch, request.user))
        return nullptr;
    kept.first = block->next_kept;
    return block;
}

void StealingVirtualResource::release_block(Kept &kept) {
    while (kept.first != nullptr) {
        Block *const block = kept.first;
        kept.first = block->next_kept;
        if (block->user != nullptr && block->user->is_done(block->epoch))
            block->user = nullptr;
        block->state = BlockState::free;
        blocks_.settle(block);
    }
}

void StealingVirtualResource::release_all() {
    for (Kept &kept : kept_)
        release_block(kept);
}

/// Takes the smallest free block, of the user's or of those open to all, that the request fits
/// into.
Block *StealingVirtualResource::take_free(const Request &request) {
    Block *best = find_fitting(request, nullptr);
    if (request.user != nullptr)
        if (Block *const own = find_fitting(request, request.user))
            best = best == nullptr || own->size_bytes <= best->size_bytes ? own : best;
    if (best == nullptr)
        return nullptr;
    return blocks_.cut(best, align_up(best->start, request.alignment), request.size_bytes);
}

Block *StealingVirtualResource::find_fitting(const Request &request, StreamUse *user) {
    FreeBlocks &blocks = blocks_.free_of(user);
    auto found = blocks.lower_bound(request.size_bytes);
    for (int looked = 0; found != blocks.end() && looked < kCandidates; ++found, ++looked)
        if (align_up((*found)->start, request.alignment) + request.size_bytes <= (*found)->stop())
            return *found;
    found = blocks.lower_bound(request.size_bytes + request.alignment - kGranule);
    return found == blocks.end() ? nullptr : *found;
}

/// Takes memory as `take_mapped` does; if that fails, gives back the pages created for it.
Block *StealingVirtualResource::take_mapped_or_nothing(const Request &request) {
    const size_t live_bytes = std::min(settings_.max_bytes, statistics_.allocated_bytes);
    if (!device_->can_back(request.size_bytes) ||
        request.size_bytes > settings_.max_bytes - live_bytes)
        return nullptr;
    const size_t before_bytes = statistics_.physical_bytes;
    try {
        if (Block *const block = take_mapped(request))
            return block;
    } catch (const std::bad_alloc &) { // no memory for lists of pages
    }
    if (statistics_.physical_bytes > before_bytes)
        release(before_bytes);
    return nullptr;
}

/// Maps memory for the request: free pages from elsewhere, then new ones. Before new ones are
/// created, waits for work that keeps free ones in use; requests again what the device refuses.
Block *StealingVirtualResource::take_mapped(const Request &request) {
    constexpr int kAttempts = 3;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        if (poll(attempt > 0 ? settings_.patience : std::chrono::nanoseconds(0)))
            if (Block *const block = take_free(request))
                return block;
        Site site = find_site(request);
        if (site.missing == SIZE_MAX && extend(request.size_bytes + request.alignment))
            site = find_site(request);
        const bool may_create = attempt > 0 || !is_awaiting();
        if (site.missing != SIZE_MAX && gather(site.missing, request, site, may_create))
            if (Block *const block = fill(request, site))
                return block;
        ++(may_create ? statistics_.retry_count : statistics_.wait_count);
    }
    return nullptr;
}

/// Returns whether free blocks wait for work.
bool StealingVirtualResource::is_awaiting() {
    return std::any_of(users_.begin(), users_.end(),
                       [this](auto &entry) { return !blocks_.free_of(&entry.second).empty(); });
}

/// Polls streams; returns whether free blocks became available to all.
bool StealingVirtualResource::poll(std::chrono::nanoseconds patience) {
    if (!is_awaiting())
        return false;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (auto &[stream, user] : users_)
        if (!blocks_.free_of(&user).empty())
            patience.count() > 0 ? user.wait_until(deadline) : user.poll();
    return blocks_.release_done();
}

StealingVirtualResource::Site StealingVirtualResource::find_site(const Request &request) const {
    Site best;
    for (Block *hole : blocks_.holes()) {
        Block *first = hole, *last = hole;
        bool is_leftmost = true; // each row once
        while (is_open(first->before, request.user)) {
            first = first->before;
            is_leftmost = is_leftmost && first->state != BlockState::hole;
        }
        while (is_open(last->after, request.user))
            last = last->after;
        if (is_leftmost)
            weigh(request, first, last, best);
    }
    return best;
}

/// Returns how many pages without memory `[start, stop)` needs, from the block that holds `start`
/// on.
size_t StealingVirtualResource::missing(const Block *block, uintptr_t start, uintptr_t stop) const {
    const size_t page_bytes = settings_.page_bytes;
    size_t count = 0;
    for (; block != nullptr && block->start < stop; block = block->after)
        if (block->state == BlockState::hole && block->stop() > start) {
            const uintptr_t from = std::max(start, block->start) / page_bytes;
            count += (std::min(stop, block->stop()) + page_bytes - 1) / page_bytes - from;
        }
    return count;
}

/// Tries a request at the beginning and at the end of each block of a row.
void StealingVirtualResource::weigh(const Request &request, const Block *first, const Block *last,
                                    Site &best) const {
    const auto consider = [&](uintptr_t start) {
        if (start < first->start || start + request.size_bytes > last->stop())
            return;
        const size_t count = missing(first, start, start + request.size_bytes);
        if (count < best.missing || (count == best.missing && start < best.start))
            best = {start, count};
    };
    for (const Block *block = first;; block = block->after) {
        consider(align_up(block->start, request.alignment));
        consider((block->stop() - request.size_bytes) & ~(request.alignment - 1));
        if (block == last)
            return;
    }
}

void StealingVirtualResource::after_fork(bool is_child) {
    is_abandoned_ = is_child && (device_->is_shared() || !device_->is_host());
    mutex_.unlock();
}

} // namespace tightship::resource
