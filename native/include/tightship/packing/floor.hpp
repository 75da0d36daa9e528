/// Rectangles placed so far, and the gaps between them.
#pragma once

#include "tightship/packing/place.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tightship::packing {

/// Set of placed buffers; `meet(a, b)` returns whether two buffers must not share bytes.
template <class Meet> class Floor {
  public:
    Floor(std::span<const std::int64_t> size, std::span<const std::int64_t> alignment, Meet meet)
        : size_(size), alignment_(alignment), meet_(meet) {
        placed_.reserve(size.size());
    }

    std::size_t count() const { return size_.size(); }
    bool is_empty(std::size_t buffer) const { return size_[buffer] == 0; }

    /// Returns the lowest offset at which a buffer fits.
    std::int64_t lowest(std::size_t buffer) const {
        std::int64_t offset = 0;
        for (const Placed &other : placed_) {
            if (!meet_(buffer, other.buffer))
                continue;
            if (other.offset >= offset + size_[buffer])
                break;
            offset = above(other, offset, buffer);
        }
        return offset;
    }

    /// Returns the offset in the smallest gap that holds a buffer; above all buffers that it meets
    /// if none does.
    std::int64_t tightest(std::size_t buffer) const {
        std::int64_t offset = 0;
        std::int64_t best = -1;
        std::int64_t best_slack = std::numeric_limits<std::int64_t>::max();
        for (const Placed &other : placed_) {
            if (!meet_(buffer, other.buffer))
                continue;
            const std::int64_t slack = other.offset - offset - size_[buffer];
            if (slack >= 0 && slack < best_slack) {
                best_slack = slack;
                best = offset;
            }
            offset = above(other, offset, buffer);
        }
        return best >= 0 ? best : offset;
    }

    void add(std::size_t buffer, std::int64_t offset) {
        const auto position = std::upper_bound(
            placed_.begin(), placed_.end(), offset,
            [](std::int64_t value, const Placed &other) { return value < other.offset; });
        placed_.insert(position, {offset, offset + size_[buffer], buffer});
    }

  private:
    struct Placed {
        std::int64_t offset;
        std::int64_t top;
        std::size_t buffer;
    };

    std::int64_t above(const Placed &other, std::int64_t offset, std::size_t buffer) const {
        return std::max(offset, place::align_up(other.top, alignment_[buffer]));
    }

    std::span<const std::int64_t> size_;
    std::span<const std::int64_t> alignment_;
    Meet meet_;
    std::vector<Placed> placed_;
};

/// Places buffers in the given order, each at its lowest offset or in its tightest gap; empty ones
/// at 0.
template <class Meet>
place::Offsets place_in_order(Floor<Meet> &floor, place::Order order, bool is_lowest) {
    place::Offsets offsets(floor.count(), 0);
    for (const std::int64_t index : order) {
        const auto buffer = static_cast<std::size_t>(index);
        if (floor.is_empty(buffer))
            continue;
        offsets[buffer] = is_lowest ? floor.lowest(buffer) : floor.tightest(buffer);
        floor.add(buffer, offsets[buffer]);
    }
    return offsets;
}

} // namespace tightship::packing
