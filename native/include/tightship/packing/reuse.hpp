/// Placement in a given capacity that avoids costly reuse of bytes.
#pragma once

#include <cstdint>
#include <span>

#include "tightship/packing/place.hpp"

namespace tightship::packing {

/// Cost of any byte shared by two buffers that are never live together.
struct Penalty {
    std::int64_t first;
    std::int64_t second;
    std::int64_t cost;
};

/// Returns the sum of the costs of all pairs that share a byte.
std::int64_t reuse_cost(const place::Buffers &buffers, std::span<const Penalty> penalties,
                        std::span<const std::int64_t> offsets);

/// Improves a placement within `capacity` to one of small cost by simulated annealing from a fixed
/// seed: repeatedly takes out some buffers that reuse each other's bytes and puts them where they
/// cost least, sometimes accepting a higher cost. The result never costs more than the start.
///
/// One move is O(k log k) for k buffers that are live with those moved or have a penalty with them.
/// O(n^2) for n buffers before the first move.
place::Offsets reduce_reuse(const place::Buffers &buffers, std::span<const Penalty> penalties,
                            std::int64_t capacity, std::span<const std::int64_t> offsets,
                            std::int64_t moves);

} // namespace tightship::packing
