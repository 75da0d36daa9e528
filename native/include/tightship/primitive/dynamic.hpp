/// Memory that runs take outside their plans, for values whose sizes follow from data.
///
///     run ──allocate──> reserved pool ──give──> free pool ──allocate──> the next value
///      │                     └─end of the run: the caller's, until it gives the value up
///      └─small value: the heap
#pragma once

#include "tightship/primitive/pools.hpp"
#include "tightship/resource/host.hpp"

#include <array>
#include <atomic>
#include <unordered_map>

namespace tightship::primitive {

class DynamicMemory;

/// Pools of one model: whole pages, a pool for each value.
///
/// After each call two bounds hold: free pools have at most the budget, and the pools of runs and
/// free pools together have at most what runs need at once now or needed in any of the last `kRuns`
/// runs. A value may take a larger pool than it needs. The pages behind it go back to the system
/// before a new pool would exceed the second bound, and once the value has outlived `kTailRuns`
/// further runs.
class DynamicPools : private resource::Forkable {
  public:
    /// Least bytes of a value that has a pool; the heap serves smaller ones.
    static constexpr size_t kPooledBytes = size_t{64} << 10;
    static constexpr size_t kRuns = 64;
    static constexpr size_t kTailRuns = 2;

    explicit DynamicPools(size_t budget_bytes)
        : pools_(std::make_shared<PoolManager>(budget_bytes)) {}

    const std::shared_ptr<PoolManager> &pools() const { return pools_; }
    /// Gives free pools back, and forgets what earlier runs had; returns the bytes given back.
    size_t release_unused();

  private:
    friend class DynamicMemory;
    /// Pool with pages behind the value that has it.
    struct Tail {
        size_t size_bytes;
        size_t number; ///< of runs that had ended
    };

    /// Reserves a pool for a run; null if the system refuses. `is_new` tells whether it is zeroed.
    const Pool *reserve(DynamicMemory &run, size_t size_bytes, bool &is_new);
    const Pool *reserve_new(DynamicMemory &run, const Temporary &need);
    void unreserve(DynamicMemory &run, const Pool &pool, size_t size_bytes);
    void end(DynamicMemory &run);
    // The following functions require the lock.
    void count(DynamicMemory &run, size_t size_bytes);
    void uncount(DynamicMemory &run, size_t size_bytes);
    void discard_tails(size_t before_number);
    size_t needed_bytes() const; ///< most that runs have needed at once lately
    size_t kept_bytes() const;   ///< most that free pools may hold now

    void before_fork() final { mutex_.lock(); }
    void after_fork(bool is_child) final {
        if (is_child) // threads of other runs are not in the child
            active_bytes_ = 0;
        mutex_.unlock();
    }

    const std::shared_ptr<PoolManager> pools_;
    const std::shared_ptr<resource::MemoryResource> host_ =
        std::make_shared<resource::HostResource>();
    mutable std::mutex mutex_;
    size_t active_bytes_ = 0; ///< of values of runs that have not ended
    size_t peak_bytes_ = 0;   ///< most of these since a run has ended
    std::array<size_t, kRuns> ended_{};
    size_t ended_count_ = 0;
    std::unordered_map<const Pool *, Tail> tails_;
    size_t tail_bytes_ = 0;
    resource::ForkGuard guard_{*this};
};

/// Values of one run, from pools and the heap: live_bytes <= limit_bytes at every return of an
/// allocation. Usable from any thread. Values that the run leaves stay valid until they are given
/// back here; with the end of the run they are the caller's.
class DynamicMemory {
  public:
    /// Bytes at the front of each value, of which the last 16 record its size and its pool.
    static constexpr size_t kPooledFront = 64, kHeapFront = 16;
    static constexpr int64_t kNoLimit = INT64_MAX;

    DynamicMemory(std::shared_ptr<DynamicPools> pools, int64_t limit_bytes)
        : pools_(std::move(pools)), limit_bytes_(limit_bytes) {}
    DynamicMemory(const DynamicMemory &) = delete;
    DynamicMemory &operator=(const DynamicMemory &) = delete;
    ~DynamicMemory() { end(); }

    /// Allocates; null if the bytes exceed the limit, or the system refuses them. At a multiple of
    /// 64 from `kPooledBytes` on, else of 16.
    [[nodiscard]] void *allocate(size_t size_bytes, bool is_zeroed = false);
    /// Moves a value to another size, with its contents as far as they fit; null, and the value
    /// unchanged, if refused.
    [[nodiscard]] void *reallocate(void *value, size_t size_bytes);
    /// Gives a value of this run back; does nothing for null.
    void give(void *value);
    /// Ends the run: values that are still live are its caller's.
    void end() { pools_->end(*this); }

    int64_t limit_bytes() const { return limit_bytes_; }
    /// Bytes of values with their fronts, and whole pages; counted only if there is a limit.
    int64_t live_bytes() const { return live_bytes_; }
    int64_t peak_bytes() const { return peak_bytes_; }
    int64_t refused_bytes() const { return refused_bytes_; } ///< wanted by the last refused call

  private:
    friend class DynamicPools;
    bool charge(size_t size_bytes);
    void uncharge(size_t size_bytes);
    void *from_pool(size_t size_bytes, bool is_zeroed);
    void *from_heap(size_t size_bytes, bool is_zeroed);

    const std::shared_ptr<DynamicPools> pools_;
    const int64_t limit_bytes_;
    std::atomic<int64_t> live_bytes_{0}, peak_bytes_{0}, refused_bytes_{0};
    bool is_ended_ = false;   ///< guarded by the pools' lock, as the next
    size_t active_bytes_ = 0; ///< in pools
};

} // namespace tightship::primitive
