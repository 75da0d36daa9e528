/// Cheapest edges that separate one node of a network from another.
#pragma once

#include "tightship/flow/ancestors.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace tightship::flow {

/// Returns 1 for each node that `source` still reaches once the cheapest edges that lead to `sink`
/// are cut, else 0. Edges may connect any nodes in any direction. Dinic's algorithm. REQUIRES:
/// capacities are at least 0 and add up to less than 2^63; source and sink differ.
std::vector<std::int64_t> min_cut(std::size_t nodes, const Edges &edges,
                                  std::span<const std::int64_t> capacity, std::size_t source,
                                  std::size_t sink);

} // namespace tightship::flow
