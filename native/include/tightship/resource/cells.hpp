/// Free blocks that a thread keeps to itself: taken and put back by plain loads and stores.
#pragma once

#include "tightship/resource/thread_slot.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace tightship::resource {

/// What one thread has of a slab. Written by its owner while `is_busy`, by others only after
/// `Cells::close` has closed it; no atomic operation, no fence on the owner's side.
struct alignas(64) Cell {
    std::atomic<uint32_t> is_busy{0};   ///< the owner is within
    std::atomic<uint32_t> is_closed{0}; ///< the owner must stay out
    std::atomic<uint64_t> bits{0};      ///< free blocks of one word, no longer set in the bitmap
    std::atomic<size_t> word{0};        ///< which word
    std::atomic<char *> hot{nullptr};   ///< the block given back last: out again at once

    /// False where others have closed it; else the owner is within until `leave`.
    bool enter() {
        is_busy.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (is_closed.load(std::memory_order_acquire) == 0) [[likely]]
            return true;
        leave();
        return false;
    }
    void leave() { is_busy.store(0, std::memory_order_release); }

    // Nobody else writes meanwhile, so these need be no more than plain.
    uint64_t get_bits() const { return bits.load(std::memory_order_relaxed); }
    void set_bits(uint64_t value) { bits.store(value, std::memory_order_relaxed); }
    size_t get_word() const { return word.load(std::memory_order_relaxed); }
    void set_word(size_t value) { word.store(value, std::memory_order_relaxed); }
    char *get_hot() const { return hot.load(std::memory_order_relaxed); }
    void set_hot(char *value) { hot.store(value, std::memory_order_relaxed); }
};

/// The cells of a slab, one for each of the first threads.
///
/// Entering is a store and a load that the processor may swap; who closes a cell makes up for it
/// with a barrier on every running thread (`membarrier`), which only happens when a slab is used
/// up or the process forks. Without that call in the kernel no thread has a cell.
class Cells {
  public:
    static constexpr uint32_t kCount = 64;

    Cells();

    /// The calling thread's, if the thread was here before; else null.
    Cell *known() {
        const uint32_t slot = tls_thread_slot;
        return slot < count_ ? &cells_[slot] : nullptr;
    }
    /// The calling thread's; null where it has none.
    Cell *own() {
        const uint32_t slot = thread_slot();
        return slot < count_ ? &cells_[slot] : nullptr;
    }
    uint32_t count() const { return count_; }
    const Cell &operator[](uint32_t index) const { return cells_[index]; }

    /// Closes every cell that holds something, or all; calls `take` with each, and opens them.
    /// Returns whether one held something. REQUIRES: one thread at a time.
    template <typename Take> bool close_each(Take take) {
        if (!close(false))
            return false;
        for (uint32_t index = 0; index < count_; ++index)
            if (cells_[index].is_closed.load(std::memory_order_relaxed) != 0)
                take(cells_[index]);
        open();
        return true;
    }
    /// Closes cells, all of them or those that hold something; false where there was none.
    bool close(bool all);
    void open();
    /// Has each thread look for blocks from a line of the bitmap of its own on.
    void spread(size_t word_count);
    /// Empties every cell. REQUIRES: all are closed.
    void forget();

  private:
    uint32_t count_;
    std::unique_ptr<Cell[]> cells_;
};

} // namespace tightship::resource
