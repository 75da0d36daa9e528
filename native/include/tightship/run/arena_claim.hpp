/// Use of an arena's memory by one run at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tightship {

/// Lets its taker run in the memory, or give the memory back to the system.
class ArenaClaim {
  public:
    /// Returns whether nothing else had it.
    bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
    void give() { taken_.store(false, std::memory_order_release); }
    bool is_taken() const { return taken_.load(std::memory_order_relaxed); }

    int64_t used_ns = 0; ///< time of the steady clock after the last run that the pool did not see
    size_t used_bytes = 0; ///< bytes that this run needed

  private:
    std::atomic<bool> taken_ = false;
};

} // namespace tightship
