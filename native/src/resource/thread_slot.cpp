#include "tightship/resource/thread_slot.hpp"

#include "tightship/resource/fork_guard.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

namespace tightship::resource {

namespace {

std::atomic<uint64_t> taken[kSlotCount / 64];

struct Holder {
    ~Holder() {
        const uint32_t slot = tls_thread_slot;
        tls_thread_slot = kNoSlot;
        tls_cache_offset = kCacheCount * kCacheBytes;
        if (slot < kSlotCount)
            taken[slot / 64].fetch_and(~(uint64_t{1} << slot % 64));
    }
};

/// Resets the slots in a child, which has one thread.
struct ChildSlots final : Forkable {
    void before_fork() override {}
    void after_fork(bool is_child) override {
        if (!is_child)
            return;
        const uint32_t slot = tls_thread_slot;
        for (uint32_t word = 0; word < kSlotCount / 64; ++word)
            taken[word] = slot / 64 == word && slot < kSlotCount ? uint64_t{1} << slot % 64 : 0;
    }
    ForkGuard guard{*this};
};

uint32_t lowest_free() {
    for (uint32_t word = 0; word < kSlotCount / 64; ++word) {
        uint64_t bits = taken[word];
        while (~bits != 0) {
            const uint64_t bit = ~bits & (bits + 1);
            bits = taken[word].fetch_or(bit);
            if ((bits & bit) == 0)
                return word * 64 + static_cast<uint32_t>(std::countr_zero(bit));
        }
    }
    return kNoSlot;
}

} // namespace

uint32_t take_thread_slot() {
    static ChildSlots child_slots;
    static thread_local Holder holder;
    (void)holder;
    tls_thread_slot = lowest_free();
    tls_cache_offset = std::min(tls_thread_slot, kCacheCount) * kCacheBytes;
    return tls_thread_slot;
}

} // namespace tightship::resource
