/// Native part of the checker of plans. It shares no code with any planner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace tightship::verify {

/// Rectangles [start, stop) in steps by [offset, offset + size) in bytes; n rows in each column.
/// REQUIRES: 0 <= size, 0 <= offset, offset + size < 2**63, start < stop; n < 2**32.
struct Rectangles {
    std::span<const std::int64_t> size;
    std::span<const std::int64_t> start;
    std::span<const std::int64_t> stop;
    std::span<const std::int64_t> offset;
};

/// Returns two rectangles that share a byte in a step, if there are any. O(n log n).
std::optional<std::pair<std::size_t, std::size_t>> first_overlap(const Rectangles &rectangles);

} // namespace tightship::verify
