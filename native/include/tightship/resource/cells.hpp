/// Free blocks that a thread keeps to itself: taken and put back by plain loads and stores.
#pragma once

#include "tightship/resource/thread_slot.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace tightship::resource {

/// What one thread has of a slab: the block given back last, and free blocks of some words, each
/// word in the slot of its number. Written by its owner while `is_busy`, by others only after
/// `Cells::close` has closed it; no atomic operation, no fence on the owner's side.
struct Cell {
    static constexpr size_t kSlots = 8;

    alignas(128) std::atomic<uint32_t> is_busy{0}; ///< the owner is within
    std::atomic<uint32_t> is_closed{0};            ///< the owner must stay out
    std::atomic<char *> hot{nullptr};              ///< the block given back last: out again at once
    std::atomic<uint32_t> filled{0};               ///< slots with bits
    std::atomic<uint32_t> words[kSlots] = {};
    std::atomic<uint64_t> bits[kSlots] = {}; ///< free blocks of those words, not in the bitmap

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
    char *get_hot() const { return hot.load(std::memory_order_relaxed); }
    void set_hot(char *value) { hot.store(value, std::memory_order_relaxed); }
    uint32_t get_filled() const { return filled.load(std::memory_order_relaxed); }
    size_t get_word(size_t slot) const { return words[slot].load(std::memory_order_relaxed); }
    uint64_t get_bits(size_t slot) const { return bits[slot].load(std::memory_order_relaxed); }
    /// The free blocks it has of a word.
    uint64_t bits_of(size_t word) const {
        const size_t slot = word % kSlots;
        return get_word(slot) == word ? get_bits(slot) : 0;
    }
    size_t count() const {
        size_t blocks = get_hot() != nullptr;
        for (size_t slot = 0; slot < kSlots; ++slot)
            blocks += static_cast<size_t>(std::popcount(get_bits(slot)));
        return blocks;
    }
    void set(size_t slot, size_t word, uint64_t value) {
        words[slot].store(static_cast<uint32_t>(word), std::memory_order_relaxed);
        set_bits(slot, value);
    }
    void set_bits(size_t slot, uint64_t value) {
        bits[slot].store(value, std::memory_order_relaxed);
        const uint32_t others = get_filled() & ~(1u << slot);
        set_filled(others | static_cast<uint32_t>(value != 0) << slot);
    }
    /// More free blocks of the word that the slot has.
    void add(size_t slot, uint64_t value) {
        bits[slot].store(get_bits(slot) | value, std::memory_order_relaxed);
        set_filled(get_filled() | 1u << slot);
    }
    /// The lowest bit of a slot that has some; it is taken.
    uint64_t take(size_t slot) {
        const uint64_t found = get_bits(slot), rest = found & (found - 1);
        bits[slot].store(rest, std::memory_order_relaxed);
        if (rest == 0)
            set_filled(get_filled() & ~(1u << slot));
        return found;
    }

  private:
    void set_filled(uint32_t value) { filled.store(value, std::memory_order_relaxed); }
};
static_assert(sizeof(Cell) == 128);

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
    /// Empties every cell. REQUIRES: all are closed.
    void forget();

  private:
    uint32_t count_;
    std::unique_ptr<Cell[]> cells_;
};

} // namespace tightship::resource
