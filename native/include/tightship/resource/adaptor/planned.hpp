/// Blocks at offsets that a planner chose for an earlier iteration of the same requests.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/chunk.hpp"
#include "tightship/resource/fork_guard.hpp"

#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tightship::resource {

/// Request of an iteration, and the lifetime of its block: steps count the calls, and a block that
/// outlives the iteration stops at `SIZE_MAX`.
struct RecordedRequest {
    size_t size_bytes;
    size_t alignment;
    size_t start_step;
    size_t stop_step;
};

/// Expected request, in its order; its offset is `SIZE_MAX` if upstream is to serve it.
struct PlannedRequest {
    size_t size_bytes;
    size_t alignment;
    size_t offset_bytes;
};

/// Records the requests of each iteration. With a plan, serves each request that is as expected at
/// its offset within one block of upstream's. A request that is not expected, or whose place is
/// still occupied by a live block, goes to upstream and is counted.
class PlannedResource final : public Adaptor, private Forkable {
  public:
    explicit PlannedResource(std::shared_ptr<MemoryResource> upstream)
        : Adaptor(std::move(upstream)) {}

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override;
    size_t size_of(const void *pointer) const override;
    Statistics statistics() const override;

    /// Begins an iteration: the first request of the plan is expected next.
    void restart();
    /// Returns the requests since `restart`.
    std::vector<RecordedRequest> recorded() const;
    /// Obtains `capacity_bytes` from upstream at a multiple of `alignment`, and expects these
    /// requests; the plan before is released first. Throws `Refused` if upstream lacks the memory,
    /// `Misuse` if a block of the plan before is live or a request lies outside the capacity.
    void set_plan(std::vector<PlannedRequest> requests, size_t capacity_bytes, size_t alignment);

    size_t hit_count() const; ///< requests that were as expected
    size_t surprise_count() const;
    size_t planned_count() const; ///< live blocks at planned offsets
    size_t capacity_bytes() const;

  private:
    /// Largest number of expected requests that are skipped to find one that matches.
    static constexpr size_t kLookahead = 64;

    void *take_planned(size_t size_bytes, size_t alignment);
    Range arena() const {
        return {reinterpret_cast<uintptr_t>(arena_->start()), arena_->size_bytes()};
    }
    void record(void *pointer, size_t size_bytes, size_t alignment);
    size_t close_record(const void *pointer);

    void before_fork() override { mutex_.lock(); }
    void after_fork(bool) override { mutex_.unlock(); }

    mutable std::mutex mutex_;
    std::unique_ptr<Chunk> arena_ = std::make_unique<Chunk>(); // memory of the planned blocks
    std::vector<PlannedRequest> expected_;
    size_t next_ = 0;                     // of them
    std::map<uintptr_t, size_t> planned_; // live blocks at planned offsets: sizes by address
    size_t planned_bytes_ = 0;
    std::vector<RecordedRequest> recorded_;
    std::unordered_map<const void *, size_t> open_; // index in `recorded_` of a live block
    size_t step_ = 0;
    size_t hit_count_ = 0, surprise_count_ = 0;
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
