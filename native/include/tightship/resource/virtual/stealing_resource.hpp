/// Blocks of any size from one growing range of addresses, whose free pages move to where they are
/// needed.
#pragma once

#include "tightship/resource/fork_guard.hpp"
#include "tightship/resource/virtual/blocks.hpp"
#include "tightship/resource/virtual/virtual_resource.hpp"

#include <array>
#include <atomic>
#include <map>

namespace tightship::resource {

/// Physical memory of several resources together: now and at most so far, in bytes.
struct PhysicalTotal {
    std::atomic<size_t> now_bytes{0}, peak_bytes{0};

    /// Adds bytes unless there would be more than `max_bytes`; returns whether it did.
    bool add(size_t size_bytes, size_t max_bytes) {
        size_t before = now_bytes.load(std::memory_order_relaxed);
        do {
            if (before > max_bytes || size_bytes > max_bytes - before)
                return false;
        } while (!now_bytes.compare_exchange_weak(before, before + size_bytes));
        size_t peak = peak_bytes.load(std::memory_order_relaxed);
        while (peak < before + size_bytes &&
               !peak_bytes.compare_exchange_weak(peak, before + size_bytes)) {
        }
        return true;
    }
    void subtract(size_t size_bytes) { now_bytes -= size_bytes; }
};

/// Serves a request from the smallest free block that is large enough. If there is none, free pages
/// within other blocks are unmapped and mapped next to the free block, or into the hole, that needs
/// the fewest of them; only pages still missing are created.
///
/// A freed block stays whole for a request of exactly its size, until a request finds no other
/// memory. Pages move only when no work uses them.
class StealingVirtualResource final : public VirtualResource, private Forkable {
  public:
    struct Settings {
        size_t page_bytes = size_t{2} << 20; ///< size of pages: a multiple of the granularity
        size_t max_bytes = SIZE_MAX;         ///< of physical memory
        size_t keep_bytes = 0;               ///< free bytes that are never given back
        std::chrono::nanoseconds idle = std::chrono::seconds(10); ///< before others go back
        /// Time that a request waits for work in its way before more memory is created instead.
        std::chrono::nanoseconds patience = std::chrono::seconds(1);
        /// Total that `max_bytes` bounds; null for that of this resource alone.
        std::shared_ptr<PhysicalTotal> total = nullptr;
    };

    explicit StealingVirtualResource(std::shared_ptr<PagedDevice> device);
    /// Throws `Misuse` if the device does not support pages of that size.
    StealingVirtualResource(std::shared_ptr<PagedDevice> device, Settings settings);
    ~StealingVirtualResource() override;

    void *allocate_on(size_t size_bytes, size_t alignment, const StreamPointer &stream) override;
    Freed deallocate_on(void *pointer, size_t size_bytes, size_t alignment,
                        const StreamPointer &stream) override;
    Range range_of(const void *pointer) const override;
    size_t size_of(const void *pointer) const override;
    bool is_shared() const override { return device_->is_shared(); }
    Statistics statistics() const override;
    const std::shared_ptr<PagedDevice> &device() const override { return device_; }
    VirtualStatistics virtual_statistics() const override;
    std::vector<ListedBlock> blocks() const override;
    void record_events(size_t count) override;
    std::vector<Event> events() const override;
    size_t available_bytes() const override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    /// Gives back every page that is not in a live block or used by unfinished work.
    size_t trim() override;
    /// Returns `allocated_bytes` of the statistics, without the lock.
    size_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }

    /// Returns, without the lock, false only if the address is not one of this resource.
    bool may_hold(const void *pointer) const {
        const auto address = reinterpret_cast<uintptr_t>(pointer);
        return address >= low_.load(std::memory_order_relaxed) &&
               address < high_.load(std::memory_order_relaxed);
    }

    /// Divisor of the sizes and addresses of blocks, in bytes.
    static constexpr size_t kGranule = 256;
    /// Number of unused streams that may be remembered.
    static constexpr size_t kStreams = 64;

  private:
    struct Request {
        size_t size_bytes; // whole granules
        size_t alignment;
        StreamUse *user;
    };
    /// Place for a request, over free blocks and holes.
    struct Site {
        uintptr_t start = 0;
        size_t missing = SIZE_MAX; // pages that have no memory
    };
    /// List of the blocks of one size that are kept whole.
    struct Kept {
        size_t size_bytes = 0;
        Block *first = nullptr;
    };

    /// Streams that are not needed any more. They are destroyed after the lock is released, because
    /// the destructor of a stream may run Python code.
    using Departed = std::vector<StreamPointer>;

    // The following functions require the lock.
    StreamUse *user_of(const StreamPointer &stream, Departed &departed);
    void forget_streams(Departed &departed);
    Kept &kept_of(size_t size_bytes);
    Block *take_kept(const Request &request);
    void release_block(Kept &kept);
    void release_all();
    Block *take_free(const Request &request);
    Block *find_fitting(const Request &request, StreamUse *user);
    Block *take_mapped_or_nothing(const Request &request);
    Block *take_mapped(const Request &request);
    bool is_awaiting();
    bool poll(std::chrono::nanoseconds patience);
    Site find_site(const Request &request) const;
    void weigh(const Request &request, const Block *first, const Block *last, Site &best) const;
    size_t missing(const Block *block, uintptr_t start, uintptr_t stop) const;
    bool extend(size_t size_bytes);
    bool gather(size_t count, const Request &request, const Site &site, bool may_create);
    size_t creatable_count() const;
    bool create();
    size_t steal(size_t count, uintptr_t start, uintptr_t stop);
    bool unmap(uintptr_t start, uintptr_t stop);
    Block *fill(const Request &request, const Site &site);
    bool fill_hole(Block *hole, uintptr_t start, uintptr_t stop);
    size_t release(size_t left_bytes);
    void release_idle();

    void before_fork() override { mutex_.lock(); }
    void after_fork(bool is_child) override;

    std::shared_ptr<PagedDevice> device_;
    Settings settings_;
    mutable std::mutex mutex_;
    bool is_abandoned_ = false; // in a child that would share every byte with its parent
    VirtualStatistics statistics_;
    // Written with the lock: live bytes, and the bounds of all ranges of addresses.
    std::atomic<size_t> live_bytes_{0};
    std::atomic<uintptr_t> low_{UINTPTR_MAX}, high_{0};
    EventRing events_;
    size_t live_count_ = 0;
    size_t call_count_ = 0;
    std::map<StreamPointer, StreamUse> users_;
    size_t stream_limit_ = kStreams; // number from which unused streams are searched for
    Blocks blocks_;
    std::array<Kept, 64> kept_{};
    std::vector<std::unique_ptr<PhysicalMemory>> pages_; // mapped nowhere
    size_t needed_bytes_ = 0;                            // most live bytes since the last release
    std::chrono::steady_clock::time_point needed_since_;
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
