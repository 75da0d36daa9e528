#include "tightship/flow/conflicts.hpp"

#include "tightship/packing/floor.hpp"

#include <algorithm>
#include <numeric>

namespace tightship::flow {

Order::Order(const Ancestors &ancestors, const Touches &touches)
    : ancestors_(ancestors), first_(touches.count()), last_(touches.count()),
      kept_(touches.count()) {
    for (std::size_t buffer = 0; buffer < touches.count(); ++buffer) {
        kept_[buffer] = touches.kept[buffer] != 0;
        const auto steps = touches.of(buffer);
        for (const std::int64_t signed_step : steps) {
            const auto step = static_cast<Step>(signed_step);
            if (std::ranges::none_of(first_[buffer],
                                     [&](Step other) { return ancestors.before(other, step); }))
                first_[buffer].push_back(step);
            std::erase_if(last_[buffer], [&](Step other) { return ancestors.before(other, step); });
            last_[buffer].push_back(step);
        }
    }
}

bool Order::before(std::size_t a, std::size_t b) const {
    if (kept_[a] || last_[a].empty() || first_[b].empty() || last_[a].back() >= first_[b].front())
        return false;
    return std::ranges::all_of(last_[a], [&](Step end) {
        return std::ranges::all_of(first_[b],
                                   [&](Step begin) { return ancestors_.before(end, begin); });
    });
}

Conflicts::Conflicts(const Order &order, std::span<const std::int64_t> group)
    : count_(order.count()), words_((count_ + 63) / 64), bits_(count_ * words_, 0) {
    for (std::size_t a = 0; a < count_; ++a)
        for (std::size_t b = 0; b < a; ++b)
            if ((!group.empty() && group[a] != group[b]) || order.meet(a, b))
                add(a, b);
}

place::Offsets place(const Conflicts &conflicts, const Sized &buffers, place::Order order,
                     Gap gap) {
    const auto meet = [&](std::size_t a, std::size_t b) { return conflicts.meet(a, b); };
    packing::Floor floor(buffers.size, buffers.alignment, meet);
    return packing::place_in_order(floor, order, gap == Gap::lowest);
}

std::vector<std::pair<Step, Step>> implied(const Order &order, const Touches &touches,
                                           const Sized &buffers,
                                           std::span<const std::int64_t> offsets,
                                           const Ancestors &ancestors) {
    std::vector<std::size_t> by_offset(touches.count());
    std::iota(by_offset.begin(), by_offset.end(), std::size_t{0});
    std::erase_if(by_offset, [&](std::size_t buffer) { return buffers.size[buffer] == 0; });
    std::ranges::sort(by_offset, {}, [&](std::size_t b) { return std::pair(offsets[b], b); });
    std::vector<std::pair<Step, Step>> edges;
    for (std::size_t i = 0; i < by_offset.size(); ++i) {
        const std::size_t lower = by_offset[i];
        const std::int64_t top = offsets[lower] + buffers.size[lower];
        for (std::size_t j = i + 1; j < by_offset.size() && offsets[by_offset[j]] < top; ++j) {
            std::size_t one = lower;
            std::size_t other = by_offset[j];
            if (!order.meet(one, other))
                continue;
            if (touches.of(other).front() < touches.of(one).front())
                std::swap(one, other);
            for (const Step end : order.last(one))
                for (const Step begin : order.first(other))
                    if (!ancestors.before(end, begin))
                        edges.emplace_back(end, begin);
        }
    }
    std::ranges::sort(edges);
    const auto repeated = std::ranges::unique(edges);
    edges.erase(repeated.begin(), repeated.end());
    return edges;
}

} // namespace tightship::flow
