#include "tightship/primitive/pools.hpp"

#include <algorithm>
#include <string>

namespace tightship::primitive {

using resource::MemoryResource;
using resource::Misuse;

void PoolManager::register_pool(std::unique_ptr<Pool> pool) {
    Pools one, dropped;
    one.push_back(std::move(pool));
    const std::lock_guard lock(mutex_);
    ++statistics_.created;
    add_free(std::move(one), dropped);
}

const Pool *PoolManager::reserve_pool(const Temporary &need, const MemoryResource &resource,
                                      size_t most_bytes) {
    const std::lock_guard lock(mutex_);
    return take(need, resource, most_bytes);
}

const Pool *PoolManager::take(const Temporary &need, const MemoryResource &resource,
                              size_t most_bytes) {
    auto chosen = free_.end();
    for (auto each = free_.begin(); each != free_.end(); ++each)
        if ((*each)->resource()->is_equal(resource) && (*each)->holds(need) &&
            (*each)->size_bytes() <= most_bytes &&
            (chosen == free_.end() || (*each)->size_bytes() < (*chosen)->size_bytes()))
            chosen = each;
    if (chosen == free_.end())
        return nullptr;
    ++statistics_.reused;
    return &add_reserved(take_free(chosen));
}

const Pool &PoolManager::reserve_or_create(const Temporary &need,
                                           const std::shared_ptr<MemoryResource> &resource) {
    Pools replaced, made;
    Temporary wanted = need;
    {
        const std::lock_guard lock(mutex_);
        if (const Pool *found = take(need, *resource))
            return *found;
        replaced = largest_of(*resource);
    }
    if (!replaced.empty()) {
        const Temporary &before = replaced.front()->need();
        wanted = {std::max(need.size_bytes, before.size_bytes),
                  std::max(need.alignment, before.alignment)};
        replaced.clear();
    }
    const ResourcePointer owner = known(resource);
    try {
        made.push_back(std::make_unique<Pool>(owner, wanted));
    } catch (const resource::Refused &) {
        if (trim(0) == 0 && wanted.size_bytes == need.size_bytes &&
            wanted.alignment == need.alignment)
            throw;
        made.push_back(std::make_unique<Pool>(owner, need));
    }
    const std::lock_guard lock(mutex_);
    ++statistics_.created;
    return add_reserved(std::move(made));
}

const Pool &PoolManager::reserve_new(const Temporary &need,
                                     const std::shared_ptr<MemoryResource> &resource) {
    const ResourcePointer owner = known(resource);
    Pools made;
    try {
        made.push_back(std::make_unique<Pool>(owner, need));
    } catch (const resource::Refused &) {
        if (trim(0) == 0)
            throw;
        made.push_back(std::make_unique<Pool>(owner, need));
    }
    const std::lock_guard lock(mutex_);
    ++statistics_.created;
    return add_reserved(std::move(made));
}

/// Removes the largest free pool of a resource from the free ones; returns none if there is none.
Pools PoolManager::largest_of(const MemoryResource &resource) {
    auto largest = free_.end();
    for (auto each = free_.begin(); each != free_.end(); ++each)
        if ((*each)->resource()->is_equal(resource) &&
            (largest == free_.end() || (*each)->size_bytes() > (*largest)->size_bytes()))
            largest = each;
    if (largest == free_.end())
        return {};
    ++statistics_.trimmed;
    return take_free(largest);
}

const Pool &PoolManager::add_reserved(Pools one) {
    ++statistics_.reserved_count;
    statistics_.reserved_bytes += one.front()->size_bytes();
    statistics_.peak_bytes =
        std::max(statistics_.peak_bytes, statistics_.free_bytes + statistics_.reserved_bytes);
    one.front()->place_ = one.begin();
    reserved_.splice(reserved_.end(), one);
    return *reserved_.back();
}

Pools PoolManager::take_free(Pools::iterator chosen) {
    --statistics_.free_count;
    statistics_.free_bytes -= (*chosen)->size_bytes();
    Pools one;
    one.splice(one.end(), free_, chosen);
    return one;
}

Pools::iterator PoolManager::find_reserved(uint64_t identity) {
    const auto found = std::ranges::find_if(
        reserved_, [&](const auto &pool) { return pool->identity() == identity; });
    if (found == reserved_.end())
        throw Misuse("Pool " + std::to_string(identity) + " is not among the " +
                     std::to_string(reserved_.size()) + " reserved ones; a pool is returned once.");
    return found;
}

Pools PoolManager::take_reserved(Pools::iterator chosen) {
    --statistics_.reserved_count;
    statistics_.reserved_bytes -= (*chosen)->size_bytes();
    Pools one;
    one.splice(one.end(), reserved_, chosen);
    return one;
}

void PoolManager::add_free(Pools one, Pools &dropped) {
    ++statistics_.free_count;
    statistics_.free_bytes += one.front()->size_bytes();
    statistics_.peak_bytes =
        std::max(statistics_.peak_bytes, statistics_.free_bytes + statistics_.reserved_bytes);
    free_.splice(free_.end(), one);
    drop_beyond(budget_bytes_, dropped);
}

void PoolManager::unreserve_pool(uint64_t identity) {
    Pools dropped;
    const std::lock_guard lock(mutex_);
    add_free(take_reserved(find_reserved(identity)), dropped);
}

void PoolManager::unreserve_pool(const Pool &pool) {
    Pools dropped;
    const std::lock_guard lock(mutex_);
    add_free(take_reserved(pool.place_), dropped);
}

void PoolManager::release_pool(uint64_t identity) {
    Pools dropped;
    const std::lock_guard lock(mutex_);
    dropped = take_reserved(find_reserved(identity));
}

void PoolManager::drop_beyond(size_t budget_bytes, Pools &dropped) {
    // Pools of no bytes have blocks, too.
    while (statistics_.free_bytes > budget_bytes || (budget_bytes == 0 && !free_.empty())) {
        dropped.splice(dropped.end(), take_free(free_.begin()));
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

PoolManager::ResourcePointer PoolManager::known(const ResourcePointer &resource) {
    if (!own_)
        return resource;
    {
        const std::lock_guard lock(known_mutex_);
        const auto found = known_.find(resource.get());
        if (found != known_.end())
            if (ResourcePointer owner = found->second.lock())
                return owner;
    }
    ResourcePointer made = own_(resource);
    const std::lock_guard lock(known_mutex_);
    std::erase_if(known_, [](const auto &entry) { return entry.second.expired(); });
    auto &entry = known_[resource.get()];
    if (ResourcePointer owner = entry.lock()) // another thread's
        return owner;
    entry = made;
    return made;
}

void PoolManager::each_resource(
    const std::function<void(const resource::MemoryResource *)> &visit) const {
    const std::lock_guard lock(known_mutex_);
    for (const auto &[resource, owner] : known_)
        if (!owner.expired())
            visit(resource);
}

size_t PoolManager::held_bytes() const {
    const std::lock_guard lock(mutex_);
    return statistics_.free_bytes + statistics_.reserved_bytes;
}

PoolStatistics PoolManager::statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
}

} // namespace tightship::primitive
