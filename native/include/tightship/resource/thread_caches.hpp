/// Free blocks that belong to one thread, taken and put back by plain loads and stores.
#pragma once

#include "tightship/resource/thread_slot.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace tightship::resource {

/// Blocks of a slab that one thread has: the last ones it freed, and free blocks of one word.
/// Written by its owner while `is_busy`, by others only after `ThreadCaches::close` has closed it;
/// the owner needs no atomic operation and no fence.
struct ThreadCache {
    static constexpr uint32_t kDepth = 60;

    alignas(128) std::atomic<char *> stack[kDepth] = {}; ///< freed blocks, the last first out
    std::atomic<uint32_t> depth{0};                      ///< number of blocks on `stack`
    std::atomic<uint32_t> is_busy{0};                    ///< the owner is within
    std::atomic<uint32_t> is_closed{0};                  ///< the owner must stay out
    std::atomic<uint32_t> word{0};
    std::atomic<uint64_t> bits{0}; ///< free blocks of that word, not in the bitmap

    /// Returns false if another thread has closed it; else the owner is inside until `leave`.
    bool enter() {
        is_busy.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (is_closed.load(std::memory_order_acquire) == 0) [[likely]]
            return true;
        leave();
        return false;
    }
    void leave() { is_busy.store(0, std::memory_order_release); }

    // Only the owner writes meanwhile, so these loads may be relaxed.
    uint32_t get_depth() const { return depth.load(std::memory_order_relaxed); }
    void set_depth(uint32_t value) { depth.store(value, std::memory_order_relaxed); }
    char *at(uint32_t place) const { return stack[place].load(std::memory_order_relaxed); }
    size_t get_word() const { return word.load(std::memory_order_relaxed); }
    uint64_t get_bits() const { return bits.load(std::memory_order_relaxed); }
    void set_bits(uint64_t value) { bits.store(value, std::memory_order_relaxed); }
    void set(size_t of_word, uint64_t value) {
        word.store(static_cast<uint32_t>(of_word), std::memory_order_relaxed);
        set_bits(value);
    }
    /// Returns the free blocks of a word in this cache, besides those in `stack`.
    uint64_t bits_of(size_t of_word) const { return get_word() == of_word ? get_bits() : 0; }
    size_t count() const { return get_depth() + static_cast<size_t>(std::popcount(get_bits())); }
    bool is_empty() const { return get_depth() == 0 && get_bits() == 0; }
    /// Pops a block. REQUIRES: `deep` is `get_depth()`, above 0.
    char *pop(uint32_t deep) {
        set_depth(deep - 1);
        return at(deep - 1);
    }
    /// Pushes a block. REQUIRES: `deep` is `get_depth()`, below `kDepth`.
    void push(uint32_t deep, char *block) {
        stack[deep].store(block, std::memory_order_relaxed);
        set_depth(deep + 1);
    }
};
static_assert(sizeof(ThreadCache) == kCacheBytes);

/// Thread caches of a slab: one for each of the first threads, and one for all other threads, which
/// is always closed.
///
/// Entering is a store and a load that the processor may reorder; a thread that closes a cache
/// makes up for it with a barrier on every running thread (`membarrier`), which only happens when a
/// slab is used up or the process forks. If the kernel lacks that call, all thread caches are
/// always closed.
class ThreadCaches {
  public:
    ThreadCaches();

    /// Returns the calling thread's cache, or the closed one.
    ThreadCache *likely() {
        return reinterpret_cast<ThreadCache *>(reinterpret_cast<char *>(caches_.get()) +
                                               tls_cache_offset);
    }
    /// Returns the calling thread's cache; null if it has none.
    ThreadCache *own() {
        const uint32_t slot = thread_slot();
        return slot < count_ ? &caches_[slot] : nullptr;
    }
    uint32_t count() const { return count_; }
    const ThreadCache &operator[](uint32_t index) const { return caches_[index]; }

    /// Closes every thread cache that holds blocks, or all; calls `take` with each, and opens them.
    /// Returns whether one held blocks. REQUIRES: one thread at a time.
    template <typename Take> bool close_each(Take take) {
        if (!close(false))
            return false;
        for (uint32_t index = 0; index < count_; ++index)
            if (caches_[index].is_closed.load(std::memory_order_relaxed) != 0)
                take(caches_[index]);
        open();
        return true;
    }
    /// Closes thread caches, all of them or those that hold blocks; returns whether there was any.
    bool close(bool all);
    void open();
    /// Empties every thread cache. REQUIRES: all are closed.
    void forget();

  private:
    uint32_t count_; // number of threads with a cache
    std::unique_ptr<ThreadCache[]> caches_;
};

} // namespace tightship::resource
