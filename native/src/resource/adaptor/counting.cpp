#include "tightship/resource/adaptor/counting.hpp"

#include <algorithm>

namespace tightship::resource {

void *StatisticsResource::allocate(size_t size_bytes, size_t alignment) {
    void *pointer = upstream()->allocate(size_bytes, alignment);
    if (pointer == nullptr)
        return nullptr;
    const auto bytes = static_cast<int64_t>(std::max<size_t>(size_bytes, 1));
    const std::lock_guard lock(lock_);
    Counters &now = scopes_.back();
    now.current_bytes += bytes;
    now.total_bytes += bytes;
    ++now.current_count;
    ++now.total_count;
    now.peak_bytes = std::max(now.peak_bytes, now.current_bytes);
    now.peak_count = std::max(now.peak_count, now.current_count);
    return pointer;
}

Freed StatisticsResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    const Freed freed = upstream()->deallocate(pointer, size_bytes, alignment);
    if (freed != Freed::done)
        return freed;
    const std::lock_guard lock(lock_);
    scopes_.back().current_bytes -= static_cast<int64_t>(std::max<size_t>(size_bytes, 1));
    --scopes_.back().current_count;
    return freed;
}

Counters StatisticsResource::counters() const {
    const std::lock_guard lock(lock_);
    return scopes_.back();
}

size_t StatisticsResource::push() {
    const std::lock_guard lock(lock_);
    scopes_.emplace_back();
    return scopes_.size() - 1;
}

Counters StatisticsResource::pop(size_t depth) {
    const std::lock_guard lock(lock_);
    if (depth == 0 || depth != scopes_.size() - 1)
        throw Misuse("`depth` (= " + std::to_string(depth) + ") is not that of the innermost of " +
                     std::to_string(scopes_.size() - 1) + " scopes that were begun.");
    const Counters inner = scopes_.back();
    scopes_.pop_back();
    Counters &outer = scopes_.back();
    outer.peak_bytes = std::max(outer.peak_bytes, outer.current_bytes + inner.peak_bytes);
    outer.peak_count = std::max(outer.peak_count, outer.current_count + inner.peak_count);
    outer.current_bytes += inner.current_bytes;
    outer.current_count += inner.current_count;
    outer.total_bytes += inner.total_bytes;
    outer.total_count += inner.total_count;
    return inner;
}

} // namespace tightship::resource
