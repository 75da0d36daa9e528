/// The order in which an attempt looks at buffers that could lie equally low.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tightship/search/instance.hpp"

namespace tightship::search {

enum Key { kLoad, kLifetime, kArea, kSize, kKeys };

/// What buffers are sorted by: a number for each key and buffer.
using Keys = std::array<std::vector<double>, kKeys>;

template <class Unit> Keys keys_of(const Instance<Unit> &instance);

/// The ranks of a series of attempts: several sorts of buffers in turn, first as they are, then
/// disturbed by chance and by blame. The same attempt and blame give the same ranks.
class Orders {
  public:
    explicit Orders(const Keys &keys);

    /// Rank of each buffer in `attempt`, which counts from 0.
    std::vector<int> ranks(std::int64_t attempt, std::span<const std::int64_t> blame) const;

    /// How many attempts take the sorts in turn once.
    static constexpr std::int64_t kSorts = 6;

  private:
    std::array<std::vector<int>, kSorts> sorted_; // buffers, first first
};

} // namespace tightship::search
