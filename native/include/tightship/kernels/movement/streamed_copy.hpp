/// Copies larger than a core's share of the last-level cache.
#pragma once

#include <cstdint>

namespace tightship::kernels {

/// Bytes from which streaming pays, because the bytes written would leave the caches anyway.
constexpr int64_t kStreamedBytes = 16 << 20;

/// Copies bytes that do not overlap, around the caches: memory is not read before it is written.
void stream_bytes(const char *from, char *to, int64_t size_bytes);

} // namespace tightship::kernels
