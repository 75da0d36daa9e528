/// A small number for each live thread; one that ends leaves its number to the next.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tightship::resource {

constexpr uint32_t kSlotCount = 1024;
constexpr uint32_t kNoSlot = UINT32_MAX - 1;  // all are taken, or the thread is ending
constexpr uint32_t kUnknownSlot = UINT32_MAX; // the thread has not asked

// What a thread keeps to itself of a slab: its thread cache lies at a multiple of its number.
constexpr uint32_t kCacheCount = 64; // the first threads have one
constexpr size_t kCacheBytes = 512;

// No function is called to read these, also in a library that was loaded late.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local uint32_t tls_thread_slot =
    kUnknownSlot;
/// Of the thread's cache among those of any slab, or of the one behind them all.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local size_t tls_cache_offset =
    kCacheCount * kCacheBytes;

/// Gives the calling thread its number; what a former holder did is visible to it.
uint32_t take_thread_slot();

/// The calling thread's number, below `kSlotCount`, or `kNoSlot`.
inline uint32_t thread_slot() {
    const uint32_t slot = tls_thread_slot;
    return slot == kUnknownSlot ? take_thread_slot() : slot;
}

} // namespace tightship::resource
