#include "tightship/resource/biased_lock.hpp"

#include "tightship/os/os.hpp"

#include <thread>

namespace tightship::resource {

BiasedLock::BiasedLock() : is_shared_(!os::register_thread_barrier()) {}

void BiasedLock::lock_slowly() {
    const uint32_t slot = thread_slot();
    uint32_t previous = kNoOwner;
    if (slot < kSlotCount && !is_shared_.load(std::memory_order_relaxed) &&
        (is_owner() || owner_.compare_exchange_strong(previous, slot)))
        return lock();
    mutex_.lock();
    if (is_shared_.load(std::memory_order_relaxed))
        return;
    is_shared_.store(true, std::memory_order_relaxed);
    os::register_thread_barrier(); // a child of a fork is not registered
    os::thread_barrier();
    while (is_within_.load(std::memory_order_acquire))
        std::this_thread::yield();
}

} // namespace tightship::resource
