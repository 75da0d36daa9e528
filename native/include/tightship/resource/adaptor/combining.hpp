/// Combination of concurrent requests into one call of the upstream.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/fork_guard.hpp"

#include <array>
#include <atomic>

namespace tightship::resource {

/// Serves threads that request memory at the same time by one of them. A thread publishes its
/// request. If no other thread is serving, it obtains blocks for all published requests of its own
/// size and alignment by one `allocate_many`, and hands them out; blocks whose requester has
/// stopped waiting go back. If another thread is serving, it waits for a moment, then withdraws its
/// request and calls the upstream itself: no thread ever depends on another, which may be in a call
/// of Python.
class CombiningResource final : public Adaptor, private Forkable {
  public:
    explicit CombiningResource(std::shared_ptr<MemoryResource> upstream)
        : Adaptor(std::move(upstream)) {}

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    size_t allocate_many(void **blocks, size_t count, size_t size_bytes,
                         size_t alignment = kDefaultAlignment) override {
        return upstream()->allocate_many(blocks, count, size_bytes, alignment);
    }
    FreedMany deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                              size_t alignment = kDefaultAlignment) override {
        return upstream()->deallocate_many(blocks, count, size_bytes, alignment);
    }

    /// Returns how many blocks were handed to a thread by another.
    uint64_t handed_count() const { return handed_count_.load(std::memory_order_relaxed); }

  private:
    static constexpr uint32_t kWishes = 64;

    /// Request published by a thread. The thread that changes `state` from the request's number
    /// owns the request: its requester, or the thread that serves it.
    struct alignas(64) Wish {
        std::atomic<uintptr_t> state{0}; // 0, the number of a request, or the block handed over
        std::atomic<size_t> size_bytes{0};
        std::atomic<size_t> alignment{0};

        /// Returns the request's number if it is for such a block, else 0.
        uintptr_t number_of(size_t size, size_t boundary) const;
    };

    void *serve(size_t size_bytes, size_t alignment);

    void before_fork() override {}
    void after_fork(bool is_child) override;

    std::array<Wish, kWishes> wishes_;
    alignas(64) std::atomic<bool> is_serving_{false};
    std::atomic<uint32_t> wisher_count_{0}; // one above the last slot that ever had a request
    std::atomic<uintptr_t> wish_count_{0};
    std::atomic<uint64_t> handed_count_{0};
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
