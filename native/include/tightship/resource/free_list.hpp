/// Free list of blocks of any size, which are joined and cut to serve requests.
#pragma once

#include "tightship/resource/biased_lock.hpp"
#include "tightship/resource/coalescing_range.hpp"
#include "tightship/resource/fork_guard.hpp"
#include "tightship/resource/memory_resource.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

namespace tightship::resource {

/// Choice of the free block for a request: the smallest that is large enough (by `SizeBins`), or
/// the first large enough in a plain list, most recently freed first.
enum class Fit : uint8_t { best, first };

/// Serves requests from freed blocks, and from `upstream` what these cannot serve; owns no memory.
/// Also takes blocks of any size that `upstream` gave to other callers. The list's links are inside
/// the blocks; their borders and sizes are recorded outside of them.
///
/// Every freed byte is in one free block, or in one that was handed out. If the upstream frees,
/// blocks join within what the upstream gave at once, so that `trim` can give that back; if it does
/// not (a bump), within all that it gave.
class FreeListResource final : public MemoryResource, private Forkable {
  public:
    struct Settings {
        Fit fit = Fit::best;
        size_t chunk_bytes = 0;      ///< least bytes of a request to upstream
        bool upstream_first = false; ///< use upstream first, free blocks if it refuses
    };

    explicit FreeListResource(std::shared_ptr<MemoryResource> upstream)
        : FreeListResource(std::move(upstream), Settings{}) {}
    FreeListResource(std::shared_ptr<MemoryResource> upstream, Settings settings);
    ~FreeListResource() override;

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    /// Frees a block of this list, or a block of at least 32 bytes that upstream gave to another
    /// caller.
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    size_t allocate_many(void **blocks, size_t count, size_t size_bytes,
                         size_t alignment = kDefaultAlignment) override;
    FreedMany deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                              size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override { return upstream_->range_of(pointer); }
    size_t size_of(const void *pointer) const override;
    bool is_shared() const override { return upstream_->is_shared(); }
    Statistics statistics() const override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    size_t available_bytes() const override;
    size_t trim() override;
    void each_upstream(const Visit &visit) const override { visit(upstream_); }
    /// Makes `pages`, whose blocks contain the free ones, discard the contents of free blocks;
    /// returns the bytes discarded. Concurrent requests do not see these blocks.
    size_t discard_free(MemoryResource &pages);

    size_t free_bytes() const;
    size_t free_count(); ///< blocks in the list, all joined
    const std::shared_ptr<MemoryResource> &upstream() const { return upstream_; }

  private:
    using CoalescingRanges = std::map<uintptr_t, CoalescingRange>;

    /// Returns the bytes that a request takes; 0 if that exceeds the largest number.
    static size_t block_bytes(size_t size_bytes) {
        return align_up(std::max<size_t>(size_bytes, 1), kFreeGranule);
    }

    struct Request {
        size_t asked_bytes; // at least 1
        size_t size_bytes;  // as it takes
        size_t alignment;
    };
    static Request request_of(size_t size_bytes, size_t alignment) {
        return {std::max<size_t>(size_bytes, 1), block_bytes(size_bytes),
                std::max(alignment, kFreeGranule)};
    }
    static bool can_be_met(const Request &request) {
        return request.size_bytes != 0 && request.alignment <= SIZE_MAX - request.size_bytes;
    }

    // The following functions require the lock.
    void *take(const Request &request);
    void *take_latest(const Request &request);
    void put_latest_away();
    void count_live(CoalescingRange &coalescing_range, uintptr_t start, const Request &request);
    FreeNode *choose(size_t size_bytes, size_t alignment) const;
    FreeNode *choose_first(size_t size_bytes, size_t alignment) const;
    void join(CoalescingRange &coalescing_range, uintptr_t start, size_t size_bytes);
    Freed give(CoalescingRange &coalescing_range, uintptr_t start, size_t size_bytes,
               size_t alignment);
    Freed fault_of(const CoalescingRange &coalescing_range, uintptr_t start, size_t size_bytes);
    void put_back(CoalescingRange &coalescing_range, uintptr_t start, size_t size_bytes);
    void insert(CoalescingRange &coalescing_range, uintptr_t start, size_t size_bytes);
    void remove(CoalescingRange &coalescing_range, FreeNode *node);
    CoalescingRange *find(uintptr_t address);
    /// Size and alignment of a request to upstream.
    struct Asked {
        size_t size_bytes, alignment;
    };
    CoalescingRange &coalescing_range_of(uintptr_t start, Range range, Asked asked);

    // The following functions require that the lock is not held.
    void *from_longer_end(const Request &request);
    void *from_upstream(const Request &request);
    bool would_help_upstream(size_t size_bytes) const;
    Freed settle(void *pointer, size_t size_bytes, size_t alignment);

    void before_fork() override { lock_.lock(); }
    void after_fork(bool is_child) override;

    std::shared_ptr<MemoryResource> upstream_;
    Settings settings_;
    bool joins_all_; // upstream takes nothing back: all it has is one coalescing range
    mutable BiasedLock lock_;
    bool is_abandoned_ = false; // in a child whose lists the parent writes to
    CoalescingRanges coalescing_ranges_;
    CoalescingRange *last_ = nullptr; // found last
    /// Most recently freed block: handed out again as it is, or added to the others by the next
    /// call.
    struct Latest {
        CoalescingRange *coalescing_range = nullptr;
        uintptr_t start = 0;
        size_t size_bytes = 0; // 0 if there is none
    } latest_;
    uintptr_t stop_ = 0; // end of upstream's last block, if upstream frees nothing
    FreeChain chain_;    // Fit::first
    SizeBins bins_;      // Fit::best
    size_t free_bytes_ = 0;
    size_t free_count_ = 0;
    size_t live_bytes_ = 0;
    size_t live_count_ = 0;
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
