/// Placement in a given capacity that avoids costly reuse of bytes.
#pragma once

#include <cstdint>
#include <span>

#include "tightship/packing/place.hpp"

namespace tightship::packing {

/// What it costs if two buffers that are never live together share a byte.
struct Penalty {
    std::int64_t first;
    std::int64_t second;
    std::int64_t cost;
};

/// The sum of the costs of all pairs that share a byte.
std::int64_t reuse_cost(const place::Buffers &buffers, std::span<const Penalty> penalties,
                        std::span<const std::int64_t> offsets);

/// A placement of small cost within `capacity`, from one that fits: again and again some buffers
/// that reuse each other are taken out and put where they cost least, and sometimes left where they
/// cost more (simulated annealing from a fixed seed). Never costs more than what it starts from.
///
/// One move is O(k log k) for k buffers that are live with those moved or have a penalty with them.
/// O(n^2) for n buffers before the first.
place::Offsets reduce_reuse(const place::Buffers &buffers, std::span<const Penalty> penalties,
                            std::int64_t capacity, std::span<const std::int64_t> offsets,
                            std::int64_t moves);

} // namespace tightship::packing
