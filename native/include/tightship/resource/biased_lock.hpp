/// A lock that costs no atomic operation while one thread alone takes it.
#pragma once

#include "tightship/resource/thread_slot.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tightship::resource {

/// Belongs to the first thread that takes it, which marks itself within by a plain store, until
/// another one comes: that has the kernel run a barrier on every running thread (`membarrier`) and
/// waits for the mark to go. From then on, and without that call in the kernel, it is a mutex.
/// For `std::lock_guard`.
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
    static constexpr uint32_t kNobody = UINT32_MAX - 2; // the number of no thread

    bool is_owner() const { return owner_.load(std::memory_order_relaxed) == tls_thread_slot; }
    [[gnu::noinline]] void lock_slowly();

    std::atomic<uint32_t> owner_{kNobody};
    std::atomic<bool> is_within_{false}; // the owner, without the mutex
    std::atomic<bool> is_shared_;
    std::mutex mutex_;
};

} // namespace tightship::resource
