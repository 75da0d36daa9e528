#include "tightship/place.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tightship::place {
namespace {

/// A buffer not yet placed, and the lowest offset that those placed leave it.
struct Waiting {
    std::int64_t start;
    std::int64_t stop;
    std::int64_t size;
    std::int64_t alignment;
    std::int64_t offset;
    std::size_t buffer;
};

std::vector<Waiting> waiting_in(const Buffers &buffers, Order order) {
    std::vector<Waiting> waiting;
    waiting.reserve(order.size());
    for (const std::int64_t index : order) {
        const auto i = static_cast<std::size_t>(index);
        if (buffers.size[i] > 0)
            waiting.push_back(
                {buffers.start[i], buffers.stop[i], buffers.size[i], buffers.alignment[i], 0, i});
    }
    return waiting;
}

/// Removes `waiting[next]`, which was placed, raises those it meets, and returns the position of
/// the lowest one left. Order is kept.
std::size_t settle(std::vector<Waiting> &waiting, std::size_t next) {
    const Waiting placed = waiting[next];
    const std::int64_t top = placed.offset + placed.size;
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    std::size_t lowest_at = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        if (i == next)
            continue;
        Waiting one = waiting[i];
        if (one.offset < top && one.start < placed.stop && placed.start < one.stop)
            one.offset = align_up(top, one.alignment);
        if (one.offset < lowest) {
            lowest = one.offset;
            lowest_at = kept;
        }
        waiting[kept++] = one;
    }
    waiting.resize(kept);
    return lowest_at;
}

/// Moves each buffer that ends above `target` halfway to the front. Says whether that changed
/// anything.
bool blame(const Buffers &buffers, const Offsets &offsets, std::int64_t target,
           std::vector<std::int64_t> &order) {
    std::vector<std::int64_t> key(order.size());
    for (std::size_t position = 0; position < order.size(); ++position) {
        const auto i = static_cast<std::size_t>(order[position]);
        const auto place = static_cast<std::int64_t>(position);
        key[i] = offsets[i] + buffers.size[i] > target ? 2 * place - 1 : 4 * place;
    }
    const auto by_key = [&](std::int64_t a, std::int64_t b) {
        return key[static_cast<std::size_t>(a)] < key[static_cast<std::size_t>(b)];
    };
    if (std::is_sorted(order.begin(), order.end(), by_key))
        return false;
    std::stable_sort(order.begin(), order.end(), by_key);
    return true;
}

} // namespace

Offsets lowest_first(const Buffers &buffers, Order order) {
    Offsets offsets(buffers.count(), 0);
    std::vector<Waiting> waiting = waiting_in(buffers, order);
    std::size_t next = 0;
    while (!waiting.empty()) {
        offsets[waiting[next].buffer] = waiting[next].offset;
        next = settle(waiting, next);
    }
    return offsets;
}

Offsets promote(const Buffers &buffers, Order order, std::int64_t target, std::int64_t rounds) {
    std::vector<std::int64_t> current(order.begin(), order.end());
    Offsets best;
    std::int64_t best_peak = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t round = 0; round < rounds && best_peak > target; ++round) {
        Offsets offsets = lowest_first(buffers, current);
        const bool changed = blame(buffers, offsets, target, current);
        const std::int64_t reached = peak(buffers, offsets);
        if (reached < best_peak) {
            best_peak = reached;
            best = std::move(offsets);
        }
        if (!changed)
            break;
    }
    return best;
}

} // namespace tightship::place
