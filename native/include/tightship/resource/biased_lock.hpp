/// Lock without atomic operations as long as only one thread takes it.
#pragma once

#include "tightship/resource/thread_slot.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tightship::resource {

/// Mutual exclusion, biased towards the first thread that takes the lock: this owner enters by a
/// plain store, until another thread comes. That thread has the kernel run a barrier on every
/// running thread (`membarrier`) and waits for the owner to leave. From then on, or if the kernel
/// lacks that call, the lock is a mutex. Works with `std::lock_guard`.
class BiasedLock {
  public:
    BiasedLock();

    void lock() {
        if (is_owner()) [[likely]] {
            is_within_.store(true, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);
            if (!is_shared_.load(std::memory_order_acquire)) [[likely]]
                return;
            is_within_.store(false, std::memory_order_release);
        }
        lock_slowly();
    }
    void unlock() {
        if (is_owner() && is_within_.load(std::memory_order_relaxed)) [[likely]]
            is_within_.store(false, std::memory_order_release);
        else
            mutex_.unlock();
    }

  private:
    static constexpr uint32_t kNoOwner = UINT32_MAX - 2; // no thread has this number

    bool is_owner() const { return owner_.load(std::memory_order_relaxed) == tls_thread_slot; }
    [[gnu::noinline]] void lock_slowly();

    std::atomic<uint32_t> owner_{kNoOwner};
    std::atomic<bool> is_within_{false}; // the owner is inside, without the mutex
    std::atomic<bool> is_shared_;
    std::mutex mutex_;
};

} // namespace tightship::resource
