/// Where a primitive's temporaries come from, run by run.
///
///   create_resource ──> Resource: a pool of the primitive's own while it runs
///   destroy_resource ─> on demand: given back to its memory resource at once
///                       cached: free for the next primitive that it is large enough for
#pragma once

#include "tightship/primitive/pools.hpp"

#include <utility>

namespace tightship::primitive {

class MemoryManager;

/// A pool reserved for one run of one primitive; destroyed with the object if not before.
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
    /// Of an object of the manager's lifetimes. REQUIRES: it is held.
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
    bool is_kept_ = false; ///< one of those that `reserve_pools` keeps reserved
};

/// What becomes of a pool whose run is over.
enum class Keep { kOnDemand, kCached };

/// The lifetimes of one primitive over pools that many share. From any thread: as many resources
/// at once as there are runs, a pool each. Every method but `clear` and `retire` throws
/// `resource::Misuse` while a lifetime has no end.
class MemoryManager {
  public:
    MemoryManager(std::shared_ptr<const LifetimeManager> lifetimes,
                  std::shared_ptr<PoolManager> pools, Keep keep)
        : lifetimes_(std::move(lifetimes)), pools_(std::move(pools)), keep_(keep) {}
    MemoryManager(const MemoryManager &) = delete;
    MemoryManager &operator=(const MemoryManager &) = delete;
    /// REQUIRES: no resource is held.
    ~MemoryManager() { retire(); }

    /// Makes free pools for so many runs, as far as the budget goes; all of these, or none where
    /// one is refused.
    void populate(const std::shared_ptr<resource::MemoryResource> &resource, size_t count);
    /// Gives every pool back. Throws `resource::Misuse` while one is reserved.
    void clear() { pools_->clear_pools(); }

    /// Has so many pools more reserved for this primitive, until `unreserve_pools` or `retire`.
    /// Throws `resource::Refused`, and has none more, where one of them cannot be had.
    void reserve_pools(const std::shared_ptr<resource::MemoryResource> &resource, size_t count);
    /// Returns so many of its own. Throws `resource::Misuse`, and returns none, where fewer are
    /// reserved and not in use.
    void unreserve_pools(size_t count);
    /// Pools that are reserved and not in use.
    size_t reserved_count() const;

    /// A pool for one run: one of those reserved, else a free one that is large enough, else a new
    /// one. Throws `resource::Refused` where memory cannot be had.
    Resource create_resource(const std::shared_ptr<resource::MemoryResource> &resource);
    /// Ends a run. Throws `resource::Misuse` where the resource is not one of its own.
    void destroy_resource(Resource &resource);

    /// Returns what is reserved, and what is in use as soon as it is destroyed.
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
    PoolLayout layout_; ///< once it is known, it stays
    bool is_laid_out_ = false;
    bool is_retired_ = false;
    std::vector<const Pool *> reserved_; ///< its own, not in use; with room for all its own
    size_t own_count_ = 0;
};

} // namespace tightship::primitive
