/// The native part of the judge of plans. It shares no code with any placement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace tightship::verify {

/// n rectangles: [start, stop) in steps, [offset, offset + size) in bytes; columns of length n.
/// REQUIRES: 0 <= size, 0 <= offset, offset + size < 2**63, start < stop; n < 2**32.
struct Rectangles {
    std::span<const std::int64_t> size;
    std::span<const std::int64_t> start;
    std::span<const std::int64_t> stop;
    std::span<const std::int64_t> offset;
};

/// Two rectangles that share a byte in a step; none if there are no such two. O(n log n).
std::optional<std::pair<std::size_t, std::size_t>> first_overlap(const Rectangles &rectangles);

} // namespace tightship::verify
