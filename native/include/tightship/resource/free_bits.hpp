/// Concurrent bitmap of free blocks, with summaries above it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tightship::resource {

/// Set bits of level 0 are free blocks; a set bit of level k + 1 means that a word of level k may
/// have set bits. Finding a word with free bits reads one word per level, however few bits are set.
///
///     level 2   1 word
///     level 1   1.............0.............1......   one bit for each word below
///     level 0   |64 blocks|64 blocks|64 blocks|...    1 = free
///
/// A block that was free before `claim` began and stays free is found: claims that are still
/// clearing summaries are counted, and a search that finds nothing waits for those.
class FreeBits {
  public:
    using Word = std::atomic<uint64_t>;

    /// Returns the bytes that the words of `count` bits and their summaries take.
    static size_t size_bytes(size_t count);

    /// Builds the bitmap in zeroed memory of `size_bytes(count)`, 64-byte aligned, with every bit
    /// set.
    FreeBits(void *memory, size_t count);

    /// Claims at most `limit` set bits of one word, the nearest from word `hint` on that has some.
    /// Returns the bits, and the word in `hint`; 0 if no bit is set.
    uint64_t claim(size_t &hint, size_t limit);
    /// Claims bits as `claim` does, from one given word.
    uint64_t claim_from(size_t word, size_t limit);
    /// Sets bits of a word; returns those that were already set.
    uint64_t release(size_t word, uint64_t bits);

    uint64_t set_of(size_t word) const {
        return levels_[0].words[word].load(std::memory_order_relaxed);
    }
    bool are_set(size_t word, uint64_t bits) const { return (set_of(word) & bits) != 0; }
    size_t set_count() const;
    /// Rebuilds the summaries if threads have vanished in the middle of a call. REQUIRES: no other
    /// thread uses the bitmap.
    void settle();
    /// Returns the lowest set bits, at most `limit` of them.
    static uint64_t lowest(uint64_t bits, size_t limit) {
        if (limit >= 64)
            return bits;
        uint64_t taken = 0;
        for (; limit > 0 && bits != 0; --limit, bits &= bits - 1)
            taken |= bits & -bits;
        return taken;
    }
    size_t word_count() const { return levels_[0].count; }

  private:
    struct Control;
    struct Level {
        Word *words;
        size_t count;
    };

    size_t find(size_t level, size_t from) const;
    void clear_above(size_t word);
    void set_above(size_t level, size_t index);

    Control *control_;
    std::vector<Level> levels_; // the last has one word
};

} // namespace tightship::resource
