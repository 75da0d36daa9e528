/// Lifetimes that lie within a range of steps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tightship::packing {

/// Set of lifetimes [start, stop), which finds the one of least rank within a range: a k-d tree
/// over starts and stops, in which each node has the least rank below it.
///
/// Building is O(n log n), `erase` O(log n), `first_within` O(sqrt n) at worst. 28 bytes a
/// lifetime.
class Contained {
  public:
    using Steps = std::span<const std::uint32_t>;

    /// Builds the set. REQUIRES: columns of one length, start < stop.
    Contained(Steps start, Steps stop);

    /// Puts every lifetime back, with new ranks: a permutation of [0, n).
    void fill(Steps rank);

    /// Returns the least rank of a lifetime in [start, stop); nothing if the set has none there.
    std::optional<std::uint32_t> first_within(std::uint32_t start, std::uint32_t stop) const;

    /// Removes a lifetime that is in the set.
    void erase(std::uint32_t lifetime);

  private:
    static constexpr std::uint32_t kGone = UINT32_MAX;

    struct Box {
        std::uint32_t start_min = UINT32_MAX;
        std::uint32_t start_max = 0;
        std::uint32_t stop_min = UINT32_MAX;
        std::uint32_t stop_max = 0;
        std::uint32_t rank = kGone; // least rank of the members below
    };

    struct Leaf {
        std::uint32_t start;
        std::uint32_t stop;
        std::uint32_t rank;
    };

    void split(Steps start, Steps stop, std::size_t node, std::size_t begin, std::size_t end);
    void search(std::size_t node, std::uint32_t start, std::uint32_t stop,
                std::uint32_t &best) const;
    std::uint32_t least(std::size_t node) const;

    std::size_t leaf_count_ = 1;
    std::vector<Box> boxes_;             // node i has the children 2 i and 2 i + 1; the root is 1
    std::vector<std::uint32_t> begins_;  // where each leaf begins in `leaves_`; n at the end
    std::vector<std::uint32_t> members_; // lifetimes in the order of `leaves_`
    std::vector<std::uint32_t> place_;   // where each lifetime is in `leaves_`
    std::vector<Leaf> leaves_;
};

} // namespace tightship::packing
