/// The free ranges of an arena, by size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tightship::packing {

/// A free range of bytes, and what its owner calls it.
struct Hole {
    std::int64_t size;
    std::int64_t offset;
    std::uint32_t range;

    friend bool operator<(const Hole &a, const Hole &b) {
        return a.size != b.size ? a.size < b.size : a.offset < b.offset;
    }
};

/// Holes by rising size, then offset, no two with one offset: blocks of neighbours under one list
/// of the last of each, so that a search looks at two short intervals of memory.
///
/// `at_least` is O(log n), `insert` and `erase` O(log n + n / 1000) with a small factor.
class Holes {
  public:
    /// Where a hole is, until the next change.
    struct Place {
        std::size_t block;
        std::size_t at;
    };

    void insert(const Hole &hole);

    /// REQUIRES: there is a hole.
    void erase(Place place);

    /// The first hole that is not below `hole`.
    Place at_least(const Hole &hole) const;

    bool is_end(Place place) const { return place.block == blocks_.size(); }
    const Hole &operator[](Place place) const { return blocks_[place.block]->holes[place.at]; }
    Place next(Place place) const;

  private:
    static constexpr std::size_t kBlock = 64;

    struct Block {
        std::size_t count = 0;
        std::array<Hole, kBlock> holes;
    };

    void split(std::size_t block);

    std::vector<Hole> last_; // of each block
    std::vector<std::unique_ptr<Block>> blocks_;
};

} // namespace tightship::packing
