/// Borders of free and live blocks in one range of addresses.
#pragma once

#include "tightship/resource/live_sizes.hpp"
#include "tightship/resource/size_bins.hpp"

#include <bit>

namespace tightship::resource {

inline uintptr_t address_of(const void *pointer) {
    return reinterpret_cast<uintptr_t>(pointer);
}

/// Set of granules, as a bitmap whose pages are touched only if bits in them are set.
class GranuleBits {
  public:
    explicit GranuleBits(size_t count)
        : words_(static_cast<uint64_t *>(std::calloc(count / 64 + 1, sizeof(uint64_t)))) {
        if (words_ == nullptr)
            throw std::bad_alloc();
    }
    bool test(size_t index) const { return (words_[index / 64] >> index % 64 & 1) != 0; }
    void set(size_t index) { words_[index / 64] |= uint64_t{1} << index % 64; }
    void clear(size_t index) { words_[index / 64] &= ~(uint64_t{1} << index % 64); }

    /// Returns the largest index in the set below `index`; `SIZE_MAX` if none.
    size_t last_before(size_t index) const {
        uint64_t mask = (uint64_t{1} << index % 64) - 1;
        for (size_t word = index / 64;; --word) {
            if (const uint64_t bits = words_[word] & mask; bits != 0)
                return word * 64 + 63 - static_cast<size_t>(std::countl_zero(bits));
            if (word == 0)
                return SIZE_MAX;
            mask = ~uint64_t{0};
        }
    }

  private:
    struct Free {
        void operator()(void *pointer) const { std::free(pointer); }
    };
    std::unique_ptr<uint64_t[], Free> words_;
};

/// Range of addresses within which adjacent free blocks are joined, and across whose border they
/// never are.
struct CoalescingRange {
    CoalescingRange(uintptr_t start, size_t size_bytes)
        : start(start), granule_count(size_bytes / kFreeGranule), starts(granule_count),
          ends(granule_count), live(granule_count) {}

    size_t granule(uintptr_t address) const { return (address - start) / kFreeGranule; }
    size_t size_bytes() const { return granule_count * kFreeGranule; }
    bool contains(uintptr_t address) const { return address - start < size_bytes(); }

    /// Returns whether the granule lies in a free block. May scan all granules before it.
    bool is_free(size_t index) const {
        if (starts.test(index) || ends.test(index))
            return true;
        const size_t begun = starts.last_before(index), ended = ends.last_before(index);
        return begun != SIZE_MAX && (ended == SIZE_MAX || ended < begun);
    }
    /// Returns whether none of those granules lies in a block, free or live. Scans all before them.
    bool is_clear(size_t first, size_t after) const {
        if (after > granule_count || is_free(first))
            return false;
        size_t before = first;
        while (before > 0 && !live.begins(before - 1))
            --before;
        if (before > 0 && (before - 1) * kFreeGranule + live.at(before - 1) > first * kFreeGranule)
            return false;
        for (size_t index = first; index < after; ++index)
            if (live.begins(index) || starts.test(index))
                return false;
        return true;
    }
    void mark(const FreeNode *node) {
        const size_t first = granule(address_of(node));
        starts.set(first);
        ends.set(first + node->size_bytes / kFreeGranule - 1);
    }
    void unmark(const FreeNode *node) {
        const size_t first = granule(address_of(node));
        starts.clear(first);
        ends.clear(first + node->size_bytes / kFreeGranule - 1);
    }
    /// Returns the free block that ends or begins where `index` begins; null if none does.
    FreeNode *before(size_t index) const {
        if (index == 0 || !ends.test(index - 1))
            return nullptr;
        const uintptr_t stop = start + index * kFreeGranule;
        return reinterpret_cast<FreeNode *>(stop - reinterpret_cast<size_t *>(stop)[-1]);
    }
    FreeNode *at(size_t index) const {
        if (index >= granule_count || !starts.test(index))
            return nullptr;
        return reinterpret_cast<FreeNode *>(start + index * kFreeGranule);
    }

    uintptr_t start;
    size_t granule_count;
    GranuleBits starts; // first granules of free blocks
    GranuleBits ends;   // last granules of free blocks
    LiveSizes live;     // of blocks handed out
    // Size obtained from the upstream, which takes it back; 0 if the upstream frees nothing.
    size_t chunk_bytes = 0;
    size_t chunk_alignment = 1;
};

} // namespace tightship::resource
