/// The cheapest edges that part one node of a network from another.
#pragma once

#include "tightship/flow/ancestors.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace tightship::flow {

/// Nodes that are still reached from `source` once the cheapest edges that lead to `sink` are cut:
/// 1 for each of them, else 0. Edges go any way. Dinic's algorithm.
/// REQUIRES: capacities are at least 0 and add up to less than 2^63; source and sink differ.
std::vector<std::int64_t> min_cut(std::size_t nodes, const Edges &edges,
                                  std::span<const std::int64_t> capacity, std::size_t source,
                                  std::size_t sink);

} // namespace tightship::flow
