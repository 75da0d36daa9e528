/// What orders of buffers are made of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tightship/packing/place.hpp"

namespace tightship::packing {

/// For each buffer the largest load of a step of its lifetime. O(n log n), 56 bytes a buffer.
std::vector<std::int64_t> live_max(const place::Buffers &buffers);

/// Rows by rising keys, of which the first counts most; equal rows by index. O(n b) for each key
/// of b bytes that differ.
std::vector<std::int64_t> sorted_rows(std::span<const std::span<const std::int64_t>> keys);

} // namespace tightship::packing
