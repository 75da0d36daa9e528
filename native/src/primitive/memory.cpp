#include "tightship/primitive/memory.hpp"

#include <algorithm>
#include <cassert>
#include <string>

namespace tightship::primitive {

using resource::MemoryResource;

Resource::~Resource() {
    if (is_held())
        manager_->destroy_resource(*this);
}

char *Resource::address(uint32_t object) const {
    assert(is_held());
    return pool_->address(manager_->layout_.offsets[object]);
}

size_t Resource::object_count() const {
    return manager_->layout_.offsets.size();
}

const PoolLayout &MemoryManager::layout() {
    const std::lock_guard lock(mutex_);
    if (!is_laid_out_) {
        layout_ = lifetimes_->layout();
        is_laid_out_ = true;
    }
    return layout_;
}

void MemoryManager::populate(const std::shared_ptr<MemoryResource> &resource, size_t count) {
    const PoolLayout &wanted = layout();
    const size_t size_bytes = std::max<size_t>(wanted.size_bytes(), 1);
    const auto owner = pools_->known(resource);
    std::vector<std::unique_ptr<Pool>> made;
    while (made.size() < std::min(count, pools_->budget_bytes() / size_bytes))
        made.push_back(std::make_unique<Pool>(owner, wanted.need));
    for (std::unique_ptr<Pool> &pool : made)
        pools_->register_pool(std::move(pool));
}

void MemoryManager::reserve_pools(const std::shared_ptr<MemoryResource> &resource, size_t count) {
    const PoolLayout &wanted = layout();
    std::vector<const Pool *> more;
    try {
        while (more.size() < count) {
            more.push_back(nullptr); // a place first, so that no pool is lost for want of one
            more.back() = &pools_->reserve_or_create(wanted.need, resource);
        }
        const std::lock_guard lock(mutex_);
        reserved_.reserve(own_count_ + count);
        reserved_.insert(reserved_.end(), more.begin(), more.end());
        own_count_ += count;
    } catch (...) {
        for (const Pool *pool : more)
            if (pool != nullptr)
                pools_->unreserve_pool(pool->identity());
        throw;
    }
}

void MemoryManager::unreserve_pools(size_t count) {
    layout();
    std::vector<const Pool *> returned;
    {
        const std::lock_guard lock(mutex_);
        if (count > reserved_.size())
            throw resource::Misuse("Cannot unreserve " + std::to_string(count) +
                                   " pools: " + std::to_string(reserved_.size()) +
                                   " are reserved and not in use.");
        returned.assign(reserved_.end() - static_cast<ptrdiff_t>(count), reserved_.end());
        reserved_.resize(reserved_.size() - count);
        own_count_ -= count;
    }
    for (const Pool *pool : returned)
        pools_->unreserve_pool(pool->identity());
}

size_t MemoryManager::reserved_count() const {
    const std::lock_guard lock(mutex_);
    return reserved_.size();
}

Resource MemoryManager::create_resource(const std::shared_ptr<MemoryResource> &resource) {
    const PoolLayout &wanted = layout();
    {
        const std::lock_guard lock(mutex_);
        const auto own = std::ranges::find_if(
            reserved_, [&](const Pool *pool) { return pool->resource()->is_equal(*resource); });
        if (own != reserved_.end()) {
            const Pool &pool = **own;
            reserved_.erase(own);
            return Resource(*this, pool, true);
        }
    }
    return Resource(*this, pools_->reserve_or_create(wanted.need, resource), false);
}

void MemoryManager::destroy_resource(Resource &held) {
    if (held.manager_ != this)
        throw resource::Misuse("The resource is not one that this manager created and still has.");
    held.manager_ = nullptr;
    if (held.is_kept_) {
        const std::lock_guard lock(mutex_);
        if (!is_retired_) {
            reserved_.push_back(held.pool_);
            return;
        }
    }
    if (keep_ == Keep::kOnDemand)
        pools_->release_pool(held.identity());
    else
        pools_->unreserve_pool(held.identity());
}

void MemoryManager::retire() {
    std::vector<const Pool *> returned;
    {
        const std::lock_guard lock(mutex_);
        is_retired_ = true;
        returned.swap(reserved_);
    }
    for (const Pool *pool : returned)
        pools_->unreserve_pool(pool->identity());
}

} // namespace tightship::primitive
