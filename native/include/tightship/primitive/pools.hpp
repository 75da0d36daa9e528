/// Pools that run primitives and pools that wait for the next one.
///
///     create ──> reserved ──unreserve──> free ──reserve──> reserved
///                                         └── beyond the budget, or too small: given back
#pragma once

#include "tightship/primitive/pool.hpp"
#include "tightship/resource/fork_guard.hpp"

#include <functional>
#include <list>
#include <map>
#include <mutex>

namespace tightship::primitive {

struct PoolStatistics {
    size_t free_count = 0;
    size_t free_bytes = 0;
    size_t reserved_count = 0;
    size_t reserved_bytes = 0;
    size_t peak_bytes = 0; ///< the most that free and reserved ones have held together
    uint64_t created = 0;
    uint64_t reused = 0;
    uint64_t trimmed = 0; ///< free ones given back, for the budget or for a larger one
};

/// Every pool is free or reserved, and reserved for one holder. Free ones hold at most the budget
/// after each call. Every method may be called from any thread; pools are made and
/// given back with no lock held.
class PoolManager : private resource::Forkable {
  public:
    using ResourcePointer = std::shared_ptr<resource::MemoryResource>;
    /// Another owner of a resource; one that is the manager's alone.
    using Own = std::function<ResourcePointer(const ResourcePointer &)>;

    /// Pools keep a resource by the owner that `own` makes once for all of them; without it, by the
    /// one they are given.
    explicit PoolManager(size_t budget_bytes, Own own = {})
        : budget_bytes_(budget_bytes), own_(std::move(own)) {}
    PoolManager(const PoolManager &) = delete;
    PoolManager &operator=(const PoolManager &) = delete;

    /// Takes a pool in, free; free pools beyond the budget are given back.
    void register_pool(std::unique_ptr<Pool> pool);

    /// The smallest free pool of the resource that holds so much, now reserved; null if none is.
    const Pool *reserve_pool(const Temporary &need, const resource::MemoryResource &resource);
    /// As `reserve_pool`, or else a new one in place of the largest free one of that resource, with
    /// the size and alignment of the larger of both: what replaces a pool serves all that it did.
    /// Throws `resource::Refused`; free pools have then been given back.
    const Pool &reserve_or_create(const Temporary &need,
                                  const std::shared_ptr<resource::MemoryResource> &resource);
    /// The reserved pool of that identity is free. Throws `resource::Misuse` where there is none.
    void unreserve_pool(uint64_t identity);
    /// The reserved pool of that identity is given back, whatever the budget. Throws as above.
    void release_pool(uint64_t identity);

    /// Gives free pools back, those that have been free for longest first, until they hold at most
    /// so many bytes; returns the bytes given back.
    size_t trim(size_t budget_bytes);
    /// Gives every pool back. Throws `resource::Misuse` while one is reserved.
    void clear_pools();

    size_t budget_bytes() const;
    /// Free pools beyond it are given back at once.
    void set_budget_bytes(size_t budget_bytes);
    PoolStatistics statistics() const;

    /// Returns the pointer by which pools own a resource; registered pools must be made with it.
    ResourcePointer known(const ResourcePointer &resource);
    /// Shows each resource that `own` made an owner of and that pools keep.
    void each_resource(const std::function<void(const resource::MemoryResource *)> &visit) const;

  private:
    using Pools = std::list<std::unique_ptr<Pool>>; ///< spliced: nothing is allocated to return one

    const Pool *take(const Temporary &need, const resource::MemoryResource &resource);
    Pools largest_of(const resource::MemoryResource &resource);
    const Pool &add_reserved(Pools one);
    Pools take_reserved(uint64_t identity);
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
    mutable std::mutex known_mutex_; ///< nothing is called while it is held
    std::map<const resource::MemoryResource *, std::weak_ptr<resource::MemoryResource>> known_;
    Pools free_; ///< the one that has been free for longest first
    Pools reserved_;
    PoolStatistics statistics_;
    resource::ForkGuard guard_{*this};
};

} // namespace tightship::primitive
