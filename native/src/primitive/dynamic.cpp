#include "tightship/primitive/dynamic.hpp"

#include "tightship/os/os.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tightship::primitive {

namespace {

/// Record in the last bytes before a value.
struct Front {
    const Pool *pool;  ///< null for a value in the heap
    size_t size_bytes; ///< as counted: with the front, and whole pages for a pool
};
static_assert(sizeof(Front) == DynamicMemory::kHeapFront);

Front &front_of(void *value) {
    return static_cast<Front *>(value)[-1];
}

size_t front_bytes(const Front &front) {
    return front.pool == nullptr ? DynamicMemory::kHeapFront : DynamicMemory::kPooledFront;
}

} // namespace

size_t DynamicPools::release_unused() {
    {
        const std::lock_guard lock(mutex_);
        ended_.fill(0);
        peak_bytes_ = active_bytes_;
        discard_tails(SIZE_MAX);
    }
    return pools_->trim(0);
}

size_t DynamicPools::needed_bytes() const {
    return std::max(peak_bytes_, *std::ranges::max_element(ended_));
}

size_t DynamicPools::kept_bytes() const {
    const size_t most = needed_bytes();
    return most - std::min(most, active_bytes_ + tail_bytes_);
}

void DynamicPools::count(DynamicMemory &run, size_t size_bytes) {
    if (run.is_ended_)
        return;
    active_bytes_ += size_bytes;
    run.active_bytes_ += size_bytes;
    peak_bytes_ = std::max(peak_bytes_, active_bytes_);
}

void DynamicPools::uncount(DynamicMemory &run, size_t size_bytes) {
    if (run.is_ended_)
        return;
    active_bytes_ -= std::min(active_bytes_, size_bytes);
    run.active_bytes_ -= std::min(run.active_bytes_, size_bytes);
}

void DynamicPools::discard_tails(size_t before_number) {
    std::erase_if(tails_, [&](const auto &entry) {
        const auto &[pool, tail] = entry;
        if (tail.number >= before_number)
            return false;
        host_->discard(pool->address(pool->size_bytes() - tail.size_bytes), tail.size_bytes);
        tail_bytes_ -= tail.size_bytes;
        return true;
    });
}

const Pool *DynamicPools::reserve(DynamicMemory &run, size_t size_bytes, bool &is_new) {
    const Temporary need{size_bytes, DynamicMemory::kPooledFront};
    const Pool *found = pools_->reserve_pool(need, *host_);
    is_new = found == nullptr;
    if (is_new)
        return reserve_new(run, need);
    const std::lock_guard lock(mutex_);
    count(run, size_bytes);
    if (const size_t behind = found->size_bytes() - size_bytes; behind != 0) {
        tails_[found] = {behind, ended_count_};
        tail_bytes_ += behind;
    }
    return found;
}

const Pool *DynamicPools::reserve_new(DynamicMemory &run, const Temporary &need) {
    size_t kept = 0;
    {
        const std::lock_guard lock(mutex_);
        count(run, need.size_bytes);
        if (active_bytes_ + tail_bytes_ > needed_bytes())
            discard_tails(SIZE_MAX);
        kept = kept_bytes();
    }
    pools_->trim(kept);
    try {
        return &pools_->reserve_new(need, host_);
    } catch (const std::bad_alloc &) {
        const std::lock_guard lock(mutex_);
        uncount(run, need.size_bytes);
        return nullptr;
    }
}

void DynamicPools::unreserve(DynamicMemory &run, const Pool &pool, size_t size_bytes) {
    size_t kept = 0;
    {
        const std::lock_guard lock(mutex_);
        uncount(run, size_bytes);
        if (const auto tail = tails_.find(&pool); tail != tails_.end()) {
            tail_bytes_ -= tail->second.size_bytes;
            tails_.erase(tail);
        }
        kept = kept_bytes();
    }
    pools_->unreserve_pool(pool);
    pools_->trim(std::min(kept, pools_->budget_bytes()));
}

void DynamicPools::end(DynamicMemory &run) {
    size_t kept = 0;
    {
        const std::lock_guard lock(mutex_);
        if (run.is_ended_)
            return;
        uncount(run, run.active_bytes_);
        run.is_ended_ = true;
        ended_[ended_count_++ % kRuns] = peak_bytes_;
        if (ended_count_ > kTailRuns)
            discard_tails(ended_count_ - kTailRuns);
        peak_bytes_ = active_bytes_;
        kept = kept_bytes();
    }
    pools_->trim(std::min(kept, pools_->budget_bytes()));
}

bool DynamicMemory::charge(size_t size_bytes) {
    if (limit_bytes_ == kNoLimit)
        return true;
    const auto size = static_cast<int64_t>(std::min<size_t>(size_bytes, INT64_MAX / 2));
    const int64_t live = live_bytes_ += size;
    if (live > limit_bytes_) {
        live_bytes_ -= size;
        refused_bytes_ = live;
        return false;
    }
    int64_t before = peak_bytes_;
    while (live > before && !peak_bytes_.compare_exchange_weak(before, live)) {
    }
    return true;
}

void DynamicMemory::uncharge(size_t size_bytes) {
    if (limit_bytes_ != kNoLimit)
        live_bytes_ -= static_cast<int64_t>(std::min<size_t>(size_bytes, INT64_MAX / 2));
}

void *DynamicMemory::allocate(size_t size_bytes, bool is_zeroed) {
    return size_bytes >= DynamicPools::kPooledBytes ? from_pool(size_bytes, is_zeroed)
                                                    : from_heap(size_bytes, is_zeroed);
}

void *DynamicMemory::from_pool(size_t size_bytes, bool is_zeroed) {
    const size_t whole =
        std::max(size_bytes, resource::align_up(size_bytes + kPooledFront, os::page_size()));
    if (!charge(whole))
        return nullptr;
    bool is_new = false;
    const Pool *pool = whole > INT64_MAX / 2 ? nullptr : pools_->reserve(*this, whole, is_new);
    if (pool == nullptr) {
        uncharge(whole);
        return nullptr;
    }
    char *value = pool->address(kPooledFront);
    front_of(value) = {pool, whole};
    if (is_zeroed && !is_new)
        std::memset(value, 0, size_bytes);
    return value;
}

void *DynamicMemory::from_heap(size_t size_bytes, bool is_zeroed) {
    const size_t whole = size_bytes + kHeapFront;
    if (!charge(whole))
        return nullptr;
    void *block = is_zeroed ? std::calloc(1, whole) : std::malloc(whole);
    if (block == nullptr) {
        uncharge(whole);
        return nullptr;
    }
    void *value = static_cast<char *>(block) + kHeapFront;
    front_of(value) = {nullptr, whole};
    return value;
}

void *DynamicMemory::reallocate(void *value, size_t size_bytes) {
    void *moved = allocate(size_bytes);
    if (moved != nullptr && value != nullptr) {
        const Front &front = front_of(value);
        std::memcpy(moved, value, std::min(size_bytes, front.size_bytes - front_bytes(front)));
        give(value);
    }
    return moved;
}

void DynamicMemory::give(void *value) {
    if (value == nullptr)
        return;
    const Front front = front_of(value);
    uncharge(front.size_bytes);
    if (front.pool == nullptr)
        std::free(static_cast<char *>(value) - kHeapFront);
    else
        pools_->unreserve(*this, *front.pool, front.size_bytes);
}

} // namespace tightship::primitive
