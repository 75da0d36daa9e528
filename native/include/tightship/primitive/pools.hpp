/// Pools reserved by running primitives, and free pools for the next ones.
///
///     create ──> reserved ──unreserve──> free ──reserve──> reserved
///                                         └── beyond the budget, or too small: given back
#pragma once

#include "tightship/primitive/pool.hpp"
#include "tightship/resource/fork_guard.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace tightship::primitive {

struct PoolStatistics {
    size_t free_count = 0;
    size_t free_bytes = 0;
    size_t reserved_count = 0;
    size_t reserved_bytes = 0;
    size_t peak_bytes = 0; ///< most bytes of free and reserved pools together
    uint64_t created = 0;
    uint64_t reused = 0;
    uint64_t trimmed = 0; ///< free pools given back, for the budget or for a larger pool
};

/// Manager of pools, each free or reserved by one holder. After each call free pools hold at most
/// the budget. Every method may be called from any thread; pools are made and given back without a
/// lock held.
class PoolManager : private resource::Forkable {
  public:
    using ResourcePointer = std::shared_ptr<resource::MemoryResource>;
    /// Function that returns another owner of a resource, used by the manager only.
    using Own = std::function<ResourcePointer(const ResourcePointer &)>;

    /// Pools keep a resource alive through the owner that `own` makes once for all of them; without
    /// `own`, through the pointer that they are given.
    explicit PoolManager(size_t budget_bytes, Own own = {})
        : budget_bytes_(budget_bytes), own_(std::move(own)) {}
    PoolManager(const PoolManager &) = delete;
    PoolManager &operator=(const PoolManager &) = delete;

    /// Adds a free pool; free pools beyond the budget are given back.
    void register_pool(std::unique_ptr<Pool> pool);

    /// Reserves the smallest free pool of the resource that fits and has at most `most_bytes`;
    /// returns null if none does.
    const Pool *reserve_pool(const Temporary &need, const resource::MemoryResource &resource,
                             size_t most_bytes = SIZE_MAX);
    /// Reserves a new pool of exactly this size. Throws `resource::Refused`; free pools have then
    /// been given back.
    const Pool &reserve_new(const Temporary &need,
                            const std::shared_ptr<resource::MemoryResource> &resource);
    /// Reserves a free pool, or a new one that replaces the largest free one of the resource with
    /// at least its size and alignment, so that it serves all that the replaced one did.
    /// Throws `resource::Refused`; free pools have then been given back.
    const Pool &reserve_or_create(const Temporary &need,
                                  const std::shared_ptr<resource::MemoryResource> &resource);
    /// Frees a reserved pool. Throws `resource::Misuse` if none has this identity.
    void unreserve_pool(uint64_t identity);
    /// Frees a pool that is reserved here.
    void unreserve_pool(const Pool &pool);
    /// Gives a reserved pool back, whatever the budget. Throws as `unreserve_pool` does.
    void release_pool(uint64_t identity);

    /// Gives free pools back, the longest free first, until they hold at most `budget_bytes`;
    /// returns the bytes given back.
    size_t trim(size_t budget_bytes);
    /// Gives every pool back. Throws `resource::Misuse` while one is reserved.
    void clear_pools();

    size_t budget_bytes() const;
    /// Sets the budget; free pools beyond it are given back at once.
    void set_budget_bytes(size_t budget_bytes);
    PoolStatistics statistics() const;
    size_t held_bytes() const; ///< of free and reserved pools

    /// Returns the pointer by which pools own a resource; registered pools must be made with it.
    ResourcePointer known(const ResourcePointer &resource);
    /// Calls `visit` for each resource that pools keep through an owner of `own`.
    void each_resource(const std::function<void(const resource::MemoryResource *)> &visit) const;

  private:
    const Pool *take(const Temporary &need, const resource::MemoryResource &resource,
                     size_t most_bytes = SIZE_MAX);
    Pools largest_of(const resource::MemoryResource &resource);
    const Pool &add_reserved(Pools one);
    Pools::iterator find_reserved(uint64_t identity);
    Pools take_reserved(Pools::iterator chosen);
    void add_free(Pools one, Pools &dropped);
    Pools take_free(Pools::iterator chosen);
    void drop_beyond(size_t budget_bytes, Pools &dropped);

    void before_fork() final {
        mutex_.lock();
        known_mutex_.lock();
    }
    void after_fork(bool) final {
        known_mutex_.unlock();
        mutex_.unlock();
    }

    mutable std::mutex mutex_;
    size_t budget_bytes_;
    const Own own_;
    mutable std::mutex known_mutex_; ///< no other code is called while it is held
    std::map<const resource::MemoryResource *, std::weak_ptr<resource::MemoryResource>> known_;
    Pools free_; ///< the longest free first
    Pools reserved_;
    PoolStatistics statistics_;
    resource::ForkGuard guard_{*this};
};

} // namespace tightship::primitive
