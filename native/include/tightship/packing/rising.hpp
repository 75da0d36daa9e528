/// Sorting by columns of int64 in near-linear time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tightship::packing {

using Rows = std::vector<std::uint32_t>;

/// Returns all rows by rising key, equal keys in row order. O(n b) for keys that differ in b bytes.
/// REQUIRES: fewer than 2**32 rows.
Rows rising(std::span<const std::int64_t> key);

} // namespace tightship::packing
