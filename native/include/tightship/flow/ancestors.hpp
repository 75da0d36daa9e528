/// Precedence between steps that holds in every order in which a program's steps may run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tightship::flow {

using Step = std::uint32_t;

/// Edges [i] from a step to a later one. REQUIRES: from[i] < to[i] < steps.
struct Edges {
    std::span<const std::int64_t> from;
    std::span<const std::int64_t> to;
};

/// Ancestor relation of a directed acyclic graph, stored by chains: steps with successors are
/// divided into paths, and every step has, for each path, the last position that is its ancestor.
/// Takes 4 bytes for each step and path, instead of a bit for each pair of steps.
class Ancestors {
  public:
    /// Builds the relation in O((steps + edges) * paths).
    Ancestors(std::size_t steps, const Edges &edges);

    /// Returns whether step `a` has ended whenever `b` begins. A step does not come before itself.
    bool before(Step a, Step b) const {
        return a != b && chain_[a] < chains_ && reach_[b * chains_ + chain_[a]] >= position_[a];
    }

    std::size_t steps() const { return chain_.size(); }
    std::size_t chains() const { return chains_; }

  private:
    std::size_t chains_ = 0;
    std::vector<Step> chain_;            // of each step; beyond all chains without successors
    std::vector<std::int32_t> position_; // along its chain, from 1
    std::vector<std::int32_t> reach_; // rows of steps: the last position of an ancestor, or itself
};

/// Returns the indices into `added` of the edges that follow from no others of `edges` and `added`:
/// the smallest set that orders steps alike.
std::vector<std::int64_t> needed(std::size_t steps, const Edges &edges, const Edges &added);

} // namespace tightship::flow
