#include "tightship/resource/adaptor/planned.hpp"

#include <algorithm>

namespace tightship::resource {

void *PlannedResource::allocate(size_t size_bytes, size_t alignment) {
    {
        const std::lock_guard lock(mutex_);
        if (void *pointer = take_planned(size_bytes, alignment)) {
            record(pointer, size_bytes, alignment);
            return pointer;
        }
    }
    void *pointer = upstream()->allocate(size_bytes, alignment);
    if (pointer != nullptr) {
        const std::lock_guard lock(mutex_);
        record(pointer, size_bytes, alignment);
    }
    return pointer;
}

/// Returns the place of the next expected request that equals this one; null if none is near, or
/// its place is taken.
void *PlannedResource::take_planned(size_t size_bytes, size_t alignment) {
    const size_t stop = std::min(expected_.size(), next_ + kLookahead);
    size_t found = next_;
    while (found < stop &&
           (expected_[found].size_bytes != size_bytes || expected_[found].alignment < alignment))
        ++found;
    if (found == stop) {
        surprise_count_ += !expected_.empty();
        return nullptr;
    }
    next_ = found + 1;
    if (expected_[found].offset_bytes == SIZE_MAX)
        return nullptr;
    const uintptr_t start = arena().start + expected_[found].offset_bytes;
    const auto after = planned_.lower_bound(start);
    const bool is_taken =
        (after != planned_.end() && after->first < start + size_bytes) ||
        (after != planned_.begin() && std::prev(after)->first + std::prev(after)->second > start);
    if (is_taken) {
        ++surprise_count_;
        return nullptr;
    }
    planned_.emplace_hint(after, start, size_bytes);
    planned_bytes_ += size_bytes;
    ++hit_count_;
    return reinterpret_cast<void *>(start);
}

void PlannedResource::record(void *pointer, size_t size_bytes, size_t alignment) {
    open_[pointer] = recorded_.size();
    recorded_.push_back({size_bytes, alignment, step_++, SIZE_MAX});
}

Freed PlannedResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    size_t number;
    {
        const std::lock_guard lock(mutex_);
        const bool is_planned = arena().contains(pointer);
        if (is_planned) {
            const auto found = planned_.find(address);
            if (found == planned_.end())
                return Freed::not_a_block;
            if (found->second != size_bytes)
                return Freed::wrong_size;
            if (!is_aligned(pointer, alignment))
                return Freed::wrong_alignment;
            planned_bytes_ -= size_bytes;
            planned_.erase(found);
        }
        number = close_record(pointer);
        if (is_planned)
            return Freed::done;
    }
    // The record is closed before upstream can give the address to another thread.
    const Freed freed = upstream()->deallocate(pointer, size_bytes, alignment);
    if (freed != Freed::done && number != SIZE_MAX) {
        const std::lock_guard lock(mutex_);
        open_.emplace(pointer, number);
    }
    return freed;
}

/// Records a block's end; returns the number of its request, `SIZE_MAX` if it has none.
size_t PlannedResource::close_record(const void *pointer) {
    const auto found = open_.find(pointer);
    if (found == open_.end())
        return SIZE_MAX;
    const size_t number = found->second;
    if (number < recorded_.size())
        recorded_[number].stop_step = step_++;
    open_.erase(found);
    return number;
}

size_t PlannedResource::size_of(const void *pointer) const {
    {
        const std::lock_guard lock(mutex_);
        if (arena().contains(pointer)) {
            const auto found = planned_.find(reinterpret_cast<uintptr_t>(pointer));
            return found == planned_.end() ? 0 : found->second;
        }
    }
    return upstream()->size_of(pointer);
}

Range PlannedResource::range_of(const void *pointer) const {
    {
        const std::lock_guard lock(mutex_);
        if (arena().contains(pointer))
            return arena();
    }
    return upstream()->range_of(pointer);
}

Statistics PlannedResource::statistics() const {
    Statistics all = upstream()->statistics();
    const std::lock_guard lock(mutex_);
    all.current_bytes += planned_bytes_ - arena().size_bytes;
    all.current_count += planned_.size() - (arena().size_bytes > 0);
    return all;
}

void PlannedResource::restart() {
    const std::lock_guard lock(mutex_);
    next_ = 0;
    step_ = 0;
    recorded_.clear();
    open_.clear();
}

std::vector<RecordedRequest> PlannedResource::recorded() const {
    const std::lock_guard lock(mutex_);
    return recorded_;
}

void PlannedResource::set_plan(std::vector<PlannedRequest> requests, size_t capacity_bytes,
                               size_t alignment) {
    for (const PlannedRequest &request : requests)
        if (request.offset_bytes != SIZE_MAX &&
            (request.size_bytes > capacity_bytes ||
             request.offset_bytes > capacity_bytes - request.size_bytes ||
             request.offset_bytes % request.alignment != 0 || request.alignment > alignment))
            throw Misuse("A request of " + std::to_string(request.size_bytes) +
                         " bytes at offset " + std::to_string(request.offset_bytes) +
                         " and alignment " + std::to_string(request.alignment) +
                         " does not lie within " + std::to_string(capacity_bytes) +
                         " bytes of alignment " + std::to_string(alignment) + ".");
    auto arena = std::make_unique<Chunk>();
    {
        const std::lock_guard lock(mutex_);
        if (!planned_.empty())
            throw Misuse(std::to_string(planned_.size()) +
                         " blocks of the plan before are live: give them back first.");
        expected_.clear();
        arena_.swap(arena);
    }
    arena = std::make_unique<Chunk>(); // the previous plan's memory goes back without the lock held
    if (capacity_bytes > 0)
        arena->obtain(upstream(), capacity_bytes, alignment);
    const std::lock_guard lock(mutex_);
    arena_.swap(arena);
    expected_ = std::move(requests);
    next_ = expected_.size();
}

size_t PlannedResource::hit_count() const {
    const std::lock_guard lock(mutex_);
    return hit_count_;
}

size_t PlannedResource::surprise_count() const {
    const std::lock_guard lock(mutex_);
    return surprise_count_;
}

size_t PlannedResource::planned_count() const {
    const std::lock_guard lock(mutex_);
    return planned_.size();
}

size_t PlannedResource::capacity_bytes() const {
    const std::lock_guard lock(mutex_);
    return arena().size_bytes;
}

} // namespace tightship::resource
