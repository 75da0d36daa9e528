#include <set>
#include <tuple>

#include "tightship/packing/timeline.hpp"

namespace tightship::place {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// Candidates looked at for a buffer whose alignment makes the first of them too small.
constexpr int kCandidates = 16;

/// One range of the arena, taken or free, in a list by offset.
struct Range {
    std::int64_t offset;
    std::int64_t size;
    std::uint32_t below;
    std::uint32_t above;
    bool free;
};

/// The arena as an allocator sees it: ranges that follow each other from 0 to the high-water mark,
/// no two free ones side by side.
class Arena {
  public:
    /// Takes a range of `size` bytes and returns its handle.
    std::uint32_t take(std::int64_t size, std::int64_t alignment) {
        const std::uint32_t hole = hole_for(size, alignment);
        const std::uint32_t range = hole == kNone ? raised(size, alignment) : hole;
        if (hole != kNone)
            holes_.erase(key(range));
        ranges_[range].free = false;
        const std::int64_t padding =
            align_up(ranges_[range].offset, alignment) - ranges_[range].offset;
        if (padding > 0)
            cut_below(range, padding);
        if (ranges_[range].size > size)
            cut_above(range, size);
        return range;
    }

    void give_back(std::uint32_t range) {
        Range &given = ranges_[range];
        given.free = true;
        if (given.below != kNone && ranges_[given.below].free) {
            const std::uint32_t below = given.below;
            holes_.erase(key(below));
            given.offset = ranges_[below].offset;
            given.size += ranges_[below].size;
            unlink(below);
        }
        if (given.above != kNone && ranges_[given.above].free) {
            const std::uint32_t above = given.above;
            holes_.erase(key(above));
            given.size += ranges_[above].size;
            unlink(above);
        }
        holes_.insert(key(range));
    }

    std::int64_t offset(std::uint32_t range) const { return ranges_[range].offset; }

  private:
    using Key = std::tuple<std::int64_t, std::int64_t, std::uint32_t>; // size, offset, range

    Key key(std::uint32_t range) const {
        return {ranges_[range].size, ranges_[range].offset, range};
    }

    std::uint32_t hole_for(std::int64_t size, std::int64_t alignment) const {
        auto hole = holes_.lower_bound({size, 0, 0});
        for (int tried = 0; hole != holes_.end() && tried < kCandidates; ++hole, ++tried) {
            const auto &[bytes, offset, range] = *hole;
            if (align_up(offset, alignment) - offset + size <= bytes)
                return range;
        }
        hole = holes_.lower_bound({size + alignment - 1, 0, 0});
        return hole == holes_.end() ? kNone : std::get<2>(*hole);
    }

    /// A free range at the top that is large enough, because it goes above the high-water mark.
    std::uint32_t raised(std::int64_t size, std::int64_t alignment) {
        if (top_ == kNone || !ranges_[top_].free) {
            const std::int64_t mark = top_ == kNone ? 0 : ranges_[top_].offset + ranges_[top_].size;
            const std::uint32_t range = make({mark, 0, top_, kNone, true});
            if (top_ != kNone)
                ranges_[top_].above = range;
            top_ = range;
        } else {
            holes_.erase(key(top_));
        }
        Range &top = ranges_[top_];
        top.size = align_up(top.offset, alignment) - top.offset + size;
        return top_;
    }

    void cut_below(std::uint32_t range, std::int64_t size) {
        const std::uint32_t below = ranges_[range].below;
        const std::uint32_t hole = make({ranges_[range].offset, size, below, range, true});
        if (below != kNone)
            ranges_[below].above = hole;
        ranges_[range].below = hole;
        ranges_[range].offset += size;
        ranges_[range].size -= size;
        holes_.insert(key(hole));
    }

    void cut_above(std::uint32_t range, std::int64_t size) {
        const std::uint32_t above = ranges_[range].above;
        const Range cut = ranges_[range];
        const std::uint32_t hole = make({cut.offset + size, cut.size - size, range, above, true});
        (above == kNone ? top_ : ranges_[above].below) = hole;
        ranges_[range].above = hole;
        ranges_[range].size = size;
        holes_.insert(key(hole));
    }

    void unlink(std::uint32_t range) {
        const auto [offset, size, below, above, free] = ranges_[range];
        if (below != kNone)
            ranges_[below].above = above;
        (above == kNone ? top_ : ranges_[above].below) = below;
        unused_.push_back(range);
    }

    std::uint32_t make(const Range &range) {
        if (unused_.empty()) {
            ranges_.push_back(range);
            return static_cast<std::uint32_t>(ranges_.size() - 1);
        }
        const std::uint32_t reused = unused_.back();
        unused_.pop_back();
        ranges_[reused] = range;
        return reused;
    }

    std::vector<Range> ranges_;
    std::vector<std::uint32_t> unused_;
    std::set<Key> holes_;
    std::uint32_t top_ = kNone;
};

} // namespace

Offsets best_fit(const Buffers &buffers) {
    Offsets offsets(buffers.count(), 0);
    std::vector<std::uint32_t> range_of(buffers.count());
    Arena arena;
    packing::walk(
        buffers,
        [&](std::uint32_t i) {
            range_of[i] = arena.take(buffers.size[i], buffers.alignment[i]);
            offsets[i] = arena.offset(range_of[i]);
        },
        [&](std::uint32_t i) { arena.give_back(range_of[i]); });
    return offsets;
}

} // namespace tightship::place
