/// Copies that are larger than what a core has of the last cache.
#pragma once

#include <cstdint>

namespace tightship::kernels {

/// Copies of at least so many bytes are worth it: what they write would leave the caches anyway.
constexpr int64_t kStreamedBytes = 16 << 20;

/// Bytes that do not overlap, written past the caches: memory is not read before it is written.
void stream_bytes(const char *from, char *to, int64_t size_bytes);

} // namespace tightship::kernels
