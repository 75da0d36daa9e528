/// Memory of a primitive's temporaries for each run.
///
///   create_resource ──> Resource: a pool of the primitive's own while it runs
///   destroy_resource ─> on demand: given back to its memory resource at once
///                       cached: free for the next primitive that it is large enough for
#pragma once

#include "tightship/primitive/pools.hpp"

#include <utility>

namespace tightship::primitive {

class MemoryManager;

/// Pool reserved for one run of one primitive; given back with the object if not before.
class Resource {
  public:
    Resource() = default;
    Resource(Resource &&other) noexcept
        : manager_(std::exchange(other.manager_, nullptr)), pool_(other.pool_),
          is_kept_(other.is_kept_) {}
    Resource &operator=(Resource &&other) noexcept {
        std::swap(manager_, other.manager_);
        std::swap(pool_, other.pool_);
        std::swap(is_kept_, other.is_kept_);
        return *this;
    }
    ~Resource();

    bool is_held() const { return manager_ != nullptr; }
    /// Address of an object of the manager's lifetimes. REQUIRES: the pool is held.
    char *address(uint32_t object) const;
    size_t object_count() const;
    const MemoryManager *manager() const { return manager_; } ///< null unless it is held
    uint64_t identity() const { return pool_->identity(); }

  private:
    friend class MemoryManager;
    Resource(MemoryManager &manager, const Pool &pool, bool is_kept)
        : manager_(&manager), pool_(&pool), is_kept_(is_kept) {}
    MemoryManager *manager_ = nullptr;
    const Pool *pool_ = nullptr;
    bool is_kept_ = false; ///< whether `reserve_pools` keeps it reserved
};

/// Policy for a pool when its run ends: given back, or kept.
enum class Keep { kOnDemand, kCached };

/// Gives each run of one primitive a pool, from pools that primitives share. Usable from any
/// thread, for any number of concurrent runs. Every method but `clear` and `retire` throws
/// `resource::Misuse` while a lifetime has not ended.
class MemoryManager {
  public:
    MemoryManager(std::shared_ptr<const LifetimeManager> lifetimes,
                  std::shared_ptr<PoolManager> pools, Keep keep)
        : lifetimes_(std::move(lifetimes)), pools_(std::move(pools)), keep_(keep) {}
    MemoryManager(const MemoryManager &) = delete;
    MemoryManager &operator=(const MemoryManager &) = delete;
    /// REQUIRES: no resource is held.
    ~MemoryManager() { retire(); }

    /// Makes free pools for `count` runs, as far as the budget allows: all of these, or none if one
    /// is refused.
    void populate(const std::shared_ptr<resource::MemoryResource> &resource, size_t count);
    /// Gives every pool back. Throws `resource::Misuse` while one is reserved.
    void clear() { pools_->clear_pools(); }

    /// Reserves `count` further pools for this primitive, until `unreserve_pools` or `retire`.
    /// Throws `resource::Refused`, and reserves none, if one of them is refused.
    void reserve_pools(const std::shared_ptr<resource::MemoryResource> &resource, size_t count);
    /// Returns `count` reserved pools. Throws `resource::Misuse`, and returns none, if fewer are
    /// reserved and not in use.
    void unreserve_pools(size_t count);
    /// Pools that are reserved and not in use.
    size_t reserved_count() const;

    /// Takes a pool for one run: a reserved one, else a free one that is large enough, else a new
    /// one. Throws `resource::Refused` if memory is refused.
    Resource create_resource(const std::shared_ptr<resource::MemoryResource> &resource);
    /// Ends a run. Throws `resource::Misuse` if the resource is another manager's.
    void destroy_resource(Resource &resource);

    /// Returns reserved pools now, and pools in use when their runs end.
    void retire();

    const std::shared_ptr<PoolManager> &pools() const { return pools_; }
    const std::shared_ptr<const LifetimeManager> &lifetimes() const { return lifetimes_; }

  private:
    friend class Resource;
    const PoolLayout &layout();

    std::shared_ptr<const LifetimeManager> lifetimes_;
    std::shared_ptr<PoolManager> pools_;
    const Keep keep_;
    mutable std::mutex mutex_;
    PoolLayout layout_; ///< constant once computed
    bool is_laid_out_ = false;
    bool is_retired_ = false;
    std::vector<const Pool *> reserved_; ///< own pools not in use; capacity for all own pools
    size_t own_count_ = 0;
};

} // namespace tightship::primitive
