#include "tightship/flow/ancestors.hpp"

#include <algorithm>

namespace tightship::flow {
namespace {

/// Edges sorted by the step they end at.
struct Incoming {
    std::vector<std::size_t> begin; // of each step's, and the end of all
    std::vector<Step> from;
    std::vector<std::size_t> edge;

    Incoming(std::size_t steps, const Edges &edges) : begin(steps + 1, 0) {
        for (const std::int64_t to : edges.to)
            ++begin[static_cast<std::size_t>(to) + 1];
        for (std::size_t step = 0; step < steps; ++step)
            begin[step + 1] += begin[step];
        from.resize(edges.from.size());
        edge.resize(edges.from.size());
        std::vector<std::size_t> next(begin.begin(), begin.end() - 1);
        for (std::size_t i = 0; i < edges.from.size(); ++i) {
            const std::size_t place = next[static_cast<std::size_t>(edges.to[i])]++;
            from[place] = static_cast<Step>(edges.from[i]);
            edge[place] = i;
        }
    }

    std::span<const Step> of(std::size_t step) const {
        return {from.data() + begin[step], begin[step + 1] - begin[step]};
    }
};

} // namespace

Ancestors::Ancestors(std::size_t steps, const Edges &edges) {
    const Incoming incoming(steps, edges);
    std::vector<bool> has_successor(steps, false);
    for (const std::int64_t from : edges.from)
        has_successor[static_cast<std::size_t>(from)] = true;
    constexpr Step kNone = ~Step{0};
    chain_.assign(steps, kNone);
    position_.assign(steps, 0);
    std::vector<Step> tail; // last step of each chain
    for (Step step = 0; step < steps; ++step) {
        if (!has_successor[step])
            continue;
        for (const Step before : incoming.of(step))
            if (tail[chain_[before]] == before) {
                chain_[step] = chain_[before];
                position_[step] = position_[before] + 1;
                break;
            }
        if (chain_[step] == kNone) {
            chain_[step] = static_cast<Step>(tail.size());
            position_[step] = 1;
            tail.push_back(step);
        }
        tail[chain_[step]] = step;
    }
    chains_ = tail.size();
    reach_.assign(steps * chains_, 0);
    for (Step step = 0; step < steps; ++step) {
        std::int32_t *row = reach_.data() + step * chains_;
        for (const Step before : incoming.of(step)) {
            const std::int32_t *other = reach_.data() + before * chains_;
            for (std::size_t chain = 0; chain < chains_; ++chain)
                row[chain] = std::max(row[chain], other[chain]);
        }
        if (chain_[step] < chains_)
            row[chain_[step]] = position_[step];
    }
}

std::vector<std::int64_t> needed(std::size_t steps, const Edges &edges, const Edges &added) {
    std::vector<std::int64_t> from(edges.from.begin(), edges.from.end());
    std::vector<std::int64_t> to(edges.to.begin(), edges.to.end());
    from.insert(from.end(), added.from.begin(), added.from.end());
    to.insert(to.end(), added.to.begin(), added.to.end());
    const Edges all{from, to};
    const Ancestors ancestors(steps, all);
    const Incoming incoming(steps, all);
    std::vector<std::int64_t> kept;
    for (Step step = 0; step < steps; ++step)
        for (std::size_t i = incoming.begin[step]; i < incoming.begin[step + 1]; ++i) {
            if (incoming.edge[i] < edges.from.size())
                continue;
            const Step start = incoming.from[i];
            const bool follows = std::ranges::any_of(
                incoming.of(step), [&](Step other) { return ancestors.before(start, other); });
            const bool repeats = std::any_of(incoming.from.begin() +
                                                 static_cast<std::ptrdiff_t>(incoming.begin[step]),
                                             incoming.from.begin() + static_cast<std::ptrdiff_t>(i),
                                             [&](Step other) { return other == start; });
            if (!follows && !repeats)
                kept.push_back(static_cast<std::int64_t>(incoming.edge[i] - edges.from.size()));
        }
    return kept;
}

} // namespace tightship::flow
