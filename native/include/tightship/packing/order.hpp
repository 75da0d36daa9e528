/// Keys by which planners order buffers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tightship/packing/place.hpp"

namespace tightship::packing {

/// Returns for each buffer the most bytes live at a step of its lifetime. O(n log n), 56 bytes a
/// buffer.
std::vector<std::int64_t> live_max(const place::Buffers &buffers);

/// Returns rows by rising keys, of which the first counts most; equal rows by index. O(n b) for
/// each key of b bytes that differ.
std::vector<std::int64_t> sorted_rows(std::span<const std::span<const std::int64_t>> keys);

} // namespace tightship::packing
