/// Order in which an attempt decides buffers that could lie equally low.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tightship/search/instance.hpp"

namespace tightship::search {

enum Key { kLoad, kLifetime, kArea, kSize, kKeys };

/// Sort keys: a number for each key and buffer.
using Keys = std::array<std::vector<double>, kKeys>;

template <class Unit> Keys keys_of(const Instance<Unit> &instance);

/// Ranks of a series of attempts, which alternate between several sorts of the buffers: first as
/// sorted, then disturbed by chance and by blame. The same attempt and blame give the same ranks.
class Orders {
  public:
    explicit Orders(const Keys &keys);

    /// Returns the rank of each buffer in `attempt`, which counts from 0.
    std::vector<int> ranks(std::int64_t attempt, std::span<const std::int64_t> blame) const;

    /// Number of sorts between which attempts alternate.
    static constexpr std::int64_t kSorts = 6;

  private:
    std::array<std::vector<int>, kSorts> sorted_; // buffers, the first in order first
};

} // namespace tightship::search
