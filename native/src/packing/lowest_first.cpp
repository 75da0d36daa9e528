#include <algorithm>
#include <limits>
#include <utility>

#include "tightship/packing/skyline.hpp"

namespace tightship::place {
namespace {

/// Moves each buffer that ends above `target` halfway to the front; returns whether the order
/// changed.
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
    return packing::Skyline(buffers).place(order);
}

Offsets promote(const Buffers &buffers, Order order, std::int64_t target, std::int64_t rounds) {
    packing::Skyline skyline(buffers);
    std::vector<std::int64_t> current(order.begin(), order.end());
    Offsets best;
    std::int64_t best_peak = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t round = 0; round < rounds && best_peak > target; ++round) {
        Offsets offsets = skyline.place(current);
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
