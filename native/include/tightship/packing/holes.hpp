/// Free ranges of an arena, by size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tightship::packing {

/// Free range of bytes, with a label of its owner.
struct Hole {
    std::int64_t size;
    std::int64_t offset;
    std::uint32_t range;

    friend bool operator<(const Hole &a, const Hole &b) {
        return a.size != b.size ? a.size < b.size : a.offset < b.offset;
    }
};

/// Holes by rising size, then offset, no two with one offset. They are kept in blocks of
/// neighbours, under one list of the last hole of each block, so that a search reads two short
/// intervals of memory.
///
/// `at_least` is O(log n), `insert` and `erase` O(log n + n / 1000) with a small factor.
class Holes {
  public:
    /// Position of a hole, valid until the next change.
    struct Place {
        std::size_t block;
        std::size_t at;
    };

    void insert(const Hole &hole);

    /// Removes a hole. REQUIRES: `place` is the position of one.
    void erase(Place place);

    /// Returns the position of the first hole that is not below `hole`.
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
