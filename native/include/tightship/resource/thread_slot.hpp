/// Small number of each live thread; the number of a thread that ends is reused.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tightship::resource {

constexpr uint32_t kSlotCount = 1024;
constexpr uint32_t kNoSlot = UINT32_MAX - 1;  // all are taken, or the thread is ending
constexpr uint32_t kUnknownSlot = UINT32_MAX; // the thread has not requested one

// Thread caches of a slab: a thread's lies at a multiple of the thread's number.
constexpr uint32_t kCacheCount = 64; // the first threads have one
constexpr size_t kCacheBytes = 512;

// The initial-exec model needs no function call to read these, even in a library that was loaded
// late.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local uint32_t tls_thread_slot =
    kUnknownSlot;
/// Offset of the thread's cache among those of any slab, or of the closed one behind them all.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local size_t tls_cache_offset =
    kCacheCount * kCacheBytes;

/// Assigns a number to the calling thread; writes of an earlier holder are visible to it.
uint32_t take_thread_slot();

/// Returns the calling thread's number, below `kSlotCount`, or `kNoSlot`.
inline uint32_t thread_slot() {
    const uint32_t slot = tls_thread_slot;
    return slot == kUnknownSlot ? take_thread_slot() : slot;
}

} // namespace tightship::resource
