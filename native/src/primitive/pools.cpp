#include "tightship/primitive/pools.hpp"

#include <algorithm>
#include <string>

namespace tightship::primitive {

using resource::MemoryResource;
using resource::Misuse;

void PoolManager::register_pool(std::unique_ptr<Pool> pool) {
    const std::lock_guard lock(mutex_);
    ++statistics_.created;
    ++statistics_.free_count;
    statistics_.free_bytes += pool->size_bytes();
    statistics_.peak_bytes =
        std::max(statistics_.peak_bytes, statistics_.free_bytes + statistics_.reserved_bytes);
    free_.push_back(std::move(pool));
}

const Pool *PoolManager::reserve_pool(const PoolLayout &layout, const MemoryResource &resource) {
    const std::lock_guard lock(mutex_);
    return take(layout, resource);
}

const Pool *PoolManager::take(const PoolLayout &layout, const MemoryResource &resource) {
    size_t chosen = free_.size();
    for (size_t index = 0; index < free_.size(); ++index)
        if (free_[index]->resource()->is_equal(resource) && free_[index]->holds(layout) &&
            (chosen == free_.size() || free_[index]->size_bytes() < free_[chosen]->size_bytes()))
            chosen = index;
    if (chosen == free_.size())
        return nullptr;
    ++statistics_.reused;
    return &add_reserved(take_free(chosen));
}

const Pool &PoolManager::reserve_or_create(const PoolLayout &layout,
                                           const std::shared_ptr<MemoryResource> &resource) {
    std::unique_ptr<Pool> replaced;
    {
        const std::lock_guard lock(mutex_);
        if (const Pool *found = take(layout, *resource))
            return *found;
        replaced = largest_of(*resource);
    }
    replaced.reset();
    std::unique_ptr<Pool> made;
    try {
        made = std::make_unique<Pool>(resource, layout.regions);
    } catch (const resource::Refused &) {
        if (trim(0) == 0)
            throw;
        made = std::make_unique<Pool>(resource, layout.regions);
    }
    const std::lock_guard lock(mutex_);
    ++statistics_.created;
    return add_reserved(std::move(made));
}

/// The largest free pool of a resource, no longer free; null where there is none.
std::unique_ptr<Pool> PoolManager::largest_of(const MemoryResource &resource) {
    size_t largest = free_.size();
    for (size_t index = 0; index < free_.size(); ++index)
        if (free_[index]->resource()->is_equal(resource) &&
            (largest == free_.size() || free_[index]->size_bytes() > free_[largest]->size_bytes()))
            largest = index;
    if (largest == free_.size())
        return nullptr;
    ++statistics_.trimmed;
    return take_free(largest);
}

const Pool &PoolManager::add_reserved(std::unique_ptr<Pool> pool) {
    ++statistics_.reserved_count;
    statistics_.reserved_bytes += pool->size_bytes();
    statistics_.peak_bytes =
        std::max(statistics_.peak_bytes, statistics_.free_bytes + statistics_.reserved_bytes);
    reserved_.push_back(std::move(pool));
    return *reserved_.back();
}

std::unique_ptr<Pool> PoolManager::take_free(size_t index) {
    std::unique_ptr<Pool> pool = std::move(free_[index]);
    free_.erase(free_.begin() + static_cast<ptrdiff_t>(index));
    --statistics_.free_count;
    statistics_.free_bytes -= pool->size_bytes();
    return pool;
}

std::unique_ptr<Pool> PoolManager::take_reserved(uint64_t identity) {
    const auto found = std::ranges::find_if(
        reserved_, [&](const auto &pool) { return pool->identity() == identity; });
    if (found == reserved_.end())
        throw Misuse("Pool " + std::to_string(identity) + " is not among the " +
                     std::to_string(reserved_.size()) + " reserved ones; a pool is returned once.");
    std::unique_ptr<Pool> pool = std::move(*found);
    reserved_.erase(found);
    --statistics_.reserved_count;
    statistics_.reserved_bytes -= pool->size_bytes();
    return pool;
}

void PoolManager::unreserve_pool(uint64_t identity) {
    Pools dropped;
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Pool> pool = take_reserved(identity);
    ++statistics_.free_count;
    statistics_.free_bytes += pool->size_bytes();
    free_.push_back(std::move(pool));
    drop_beyond(budget_bytes_, dropped);
}

void PoolManager::release_pool(uint64_t identity) {
    std::unique_ptr<Pool> dropped;
    const std::lock_guard lock(mutex_);
    dropped = take_reserved(identity);
}

void PoolManager::drop_beyond(size_t budget_bytes, Pools &dropped) {
    while (statistics_.free_bytes > budget_bytes) {
        dropped.push_back(take_free(0));
        ++statistics_.trimmed;
    }
}

size_t PoolManager::trim(size_t budget_bytes) {
    Pools dropped;
    const std::lock_guard lock(mutex_);
    const size_t before = statistics_.free_bytes;
    drop_beyond(budget_bytes, dropped);
    return before - statistics_.free_bytes;
}

void PoolManager::clear_pools() {
    Pools dropped;
    const std::lock_guard lock(mutex_);
    if (!reserved_.empty())
        throw Misuse("Cannot clear the pools: " + std::to_string(reserved_.size()) + " of " +
                     std::to_string(reserved_.size() + free_.size()) +
                     " are reserved. Return them first.");
    statistics_.trimmed += statistics_.free_count;
    statistics_.free_count = statistics_.free_bytes = 0;
    dropped.swap(free_);
}

size_t PoolManager::budget_bytes() const {
    const std::lock_guard lock(mutex_);
    return budget_bytes_;
}

void PoolManager::set_budget_bytes(size_t budget_bytes) {
    Pools dropped;
    const std::lock_guard lock(mutex_);
    budget_bytes_ = budget_bytes;
    drop_beyond(budget_bytes, dropped);
}

PoolStatistics PoolManager::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

} // namespace tightship::primitive
