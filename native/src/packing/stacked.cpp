#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tightship/packing/place.hpp"
#include "tightship/packing/rising.hpp"

namespace tightship::place {
namespace {

/// Heights over steps, which only rise: a tree whose nodes have the greatest height of their steps.
class Heights {
  public:
    explicit Heights(std::size_t steps)
        : leaves_(std::bit_ceil(std::max<std::size_t>(steps, 1))), highest_(2 * leaves_, 0),
          all_(2 * leaves_, 0) {}

    std::int64_t highest(std::size_t start, std::size_t stop) const {
        std::int64_t found = 0;
        std::size_t left = leaves_ + start;
        std::size_t right = leaves_ + stop - 1;
        for (std::size_t node : {left, right})
            for (; node > 0; node /= 2)
                found = std::max(found, all_[node]);
        for (++right; left < right; left /= 2, right /= 2) {
            if (left % 2 == 1)
                found = std::max(found, highest_[left++]);
            if (right % 2 == 1)
                found = std::max(found, highest_[--right]);
        }
        return found;
    }

    /// Raises steps. REQUIRES: `height` is not below any in [start, stop).
    void raise(std::size_t start, std::size_t stop, std::int64_t height) {
        std::size_t left = leaves_ + start;
        std::size_t right = leaves_ + stop;
        for (; left < right; left /= 2, right /= 2) {
            if (left % 2 == 1)
                cover(left++, height);
            if (right % 2 == 1)
                cover(--right, height);
        }
        for (std::size_t node : {leaves_ + start, leaves_ + stop - 1})
            for (node /= 2; node > 0 && highest_[node] <= height; node /= 2)
                highest_[node] = height;
    }

  private:
    void cover(std::size_t node, std::int64_t height) { all_[node] = highest_[node] = height; }

    std::size_t leaves_;
    std::vector<std::int64_t> highest_; // of the steps below a node
    std::vector<std::int64_t> all_;     // least height of every step below a node
};

/// Renumbers each buffer's column of steps below the count of steps that start or stop a lifetime.
std::vector<std::uint32_t> numbered(std::span<const std::int64_t> steps,
                                    std::span<const std::int64_t> known) {
    std::vector<std::uint32_t> numbers(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i)
        numbers[i] = static_cast<std::uint32_t>(
            std::lower_bound(known.begin(), known.end(), steps[i]) - known.begin());
    return numbers;
}

} // namespace

Offsets stacked(const Buffers &buffers, Order order) {
    Offsets offsets(buffers.count(), 0);
    // A lifetime is represented by the starts within it, because conflicts begin only at starts.
    std::vector<std::int64_t> starts;
    starts.reserve(buffers.count());
    for (const std::uint32_t buffer : packing::rising(buffers.start))
        if (starts.empty() || starts.back() != buffers.start[buffer])
            starts.push_back(buffers.start[buffer]);
    const std::vector<std::uint32_t> first = numbered(buffers.start, starts);
    const std::vector<std::uint32_t> last = numbered(buffers.stop, starts);
    Heights heights(starts.size());
    for (const std::int64_t index : order) {
        const auto buffer = static_cast<std::size_t>(index);
        if (buffers.size[buffer] == 0)
            continue;
        const std::int64_t below = heights.highest(first[buffer], last[buffer]);
        offsets[buffer] = align_up(below, buffers.alignment[buffer]);
        heights.raise(first[buffer], last[buffer], offsets[buffer] + buffers.size[buffer]);
    }
    return offsets;
}

} // namespace tightship::place
