/// Operands whose bytes callers give, by slot.
#pragma once

#include "tightship/memory_space.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tightship {

/// Indices of operands outside of arena and weights. A decoder has hundreds of slots, each with few
/// operands, and binds all of them before each token.
class ExternalOperands {
  public:
    using Use = std::pair<int64_t, uint32_t>; ///< space and index of an operand

    /// Adds the operand of the next index to be added.
    void add(const Place &place) {
        if (place.space >= kExternal)
            uses_.emplace_back(place.space, count_);
        ++count_;
    }

    /// Sorts them. REQUIRES: no operand is added afterwards.
    void sort() { std::sort(uses_.begin(), uses_.end()); }

    /// Returns those of a slot.
    std::span<const Use> of(uint32_t slot) const {
        const int64_t space = kExternal + static_cast<int64_t>(slot);
        const auto first = std::lower_bound(uses_.begin(), uses_.end(), Use{space, 0});
        const auto last = std::lower_bound(first, uses_.end(), Use{space + 1, 0});
        return {first, last};
    }

  private:
    std::vector<Use> uses_;
    uint32_t count_ = 0;
};

} // namespace tightship
