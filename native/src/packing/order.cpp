#include "tightship/packing/order.hpp"

#include <algorithm>
#include <numeric>

#include "tightship/packing/rising.hpp"

namespace tightship::packing {
namespace {

/// Maxima of intervals of a column: node i holds the larger of nodes 2 i and 2 i + 1.
class Maxima {
  public:
    explicit Maxima(std::size_t count) : count_(count), nodes_(2 * count, 0) {}

    std::int64_t &leaf(std::size_t index) { return nodes_[count_ + index]; }

    void build() {
        for (std::size_t node = count_; node-- > 1;)
            nodes_[node] = std::max(nodes_[2 * node], nodes_[2 * node + 1]);
    }

    std::int64_t within(std::size_t begin, std::size_t end) const {
        std::int64_t largest = 0;
        for (begin += count_, end += count_; begin < end; begin /= 2, end /= 2) {
            if (begin % 2 == 1)
                largest = std::max(largest, nodes_[begin++]);
            if (end % 2 == 1)
                largest = std::max(largest, nodes_[--end]);
        }
        return largest;
    }

  private:
    std::size_t count_;
    std::vector<std::int64_t> nodes_;
};

} // namespace

std::vector<std::int64_t> live_max(const place::Buffers &buffers) {
    const std::size_t count = buffers.count();
    std::vector<std::int64_t> ends(buffers.start.begin(), buffers.start.end());
    ends.insert(ends.end(), buffers.stop.begin(), buffers.stop.end());
    std::vector<std::uint32_t> step(2 * count); // of each end, renumbered
    std::uint32_t steps = 0;
    std::int64_t last = 0;
    for (const std::uint32_t end : rising(ends)) {
        if (steps == 0 || ends[end] != last)
            ++steps;
        last = ends[end];
        step[end] = steps - 1;
    }
    Maxima loads(std::max<std::size_t>(steps, 1));
    for (std::size_t i = 0; i < count; ++i) {
        loads.leaf(step[i]) += buffers.size[i];
        loads.leaf(step[count + i]) -= buffers.size[i];
    }
    for (std::uint32_t at = 1; at < steps; ++at)
        loads.leaf(at) += loads.leaf(at - 1);
    loads.build();
    std::vector<std::int64_t> largest(count);
    for (std::size_t i = 0; i < count; ++i)
        largest[i] = loads.within(step[i], step[count + i]);
    return largest;
}

std::vector<std::int64_t> sorted_rows(std::span<const std::span<const std::int64_t>> keys) {
    if (keys.empty())
        return {};
    std::vector<std::int64_t> rows(keys.front().size());
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<std::int64_t> key(rows.size());
    std::vector<std::int64_t> sorted(rows.size());
    for (std::size_t at = keys.size(); at-- > 0;) {
        std::transform(rows.begin(), rows.end(), key.begin(),
                       [&](std::int64_t row) { return keys[at][row]; });
        const Rows by_key = rising(key);
        std::transform(by_key.begin(), by_key.end(), sorted.begin(),
                       [&](std::uint32_t row) { return rows[row]; });
        rows.swap(sorted);
    }
    return rows;
}

} // namespace tightship::packing
