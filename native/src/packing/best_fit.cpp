#include <algorithm>

#include "tightship/packing/holes.hpp"
#include "tightship/packing/place.hpp"
#include "tightship/packing/rising.hpp"

namespace tightship::place {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// Candidates tried for a buffer whose alignment makes the first of them too small.
constexpr int kCandidates = 16;

/// Number of events ahead for which memory is prefetched.
constexpr std::size_t kAhead = 6;

/// Range of the arena, taken or free, in a list by offset.
struct Range {
    std::int64_t offset;
    std::int64_t size;
    std::uint32_t below;
    std::uint32_t above;
    bool free;
};

/// Arena as an allocator sees it: consecutive ranges from 0 to the high-water mark, no two free
/// ones side by side.
class Arena {
  public:
    /// Takes a range of `size` bytes and returns its handle.
    std::uint32_t take(std::int64_t size, std::int64_t alignment) {
        const packing::Holes::Place place = place_for(size, alignment);
        std::uint32_t range;
        if (holes_.is_end(place)) {
            range = raised(size, alignment);
        } else {
            range = holes_[place].range;
            holes_.erase(place);
        }
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
            erase(below);
            given.offset = ranges_[below].offset;
            given.size += ranges_[below].size;
            unlink(below);
        }
        if (given.above != kNone && ranges_[given.above].free) {
            const std::uint32_t above = given.above;
            erase(above);
            given.size += ranges_[above].size;
            unlink(above);
        }
        insert(range);
    }

    /// Prefetches a range that is freed soon.
    void expect(std::uint32_t range) const { __builtin_prefetch(ranges_.data() + range); }

    /// Prefetches the neighbours of a range that is freed very soon. REQUIRES: `expect` has fetched
    /// the range.
    void expect_beside(std::uint32_t range) const {
        if (range < ranges_.size()) {
            __builtin_prefetch(ranges_.data() + ranges_[range].below);
            __builtin_prefetch(ranges_.data() + ranges_[range].above);
        }
    }

    std::int64_t offset(std::uint32_t range) const { return ranges_[range].offset; }

  private:
    packing::Hole as_hole(std::uint32_t range) const {
        return {ranges_[range].size, ranges_[range].offset, range};
    }

    void insert(std::uint32_t range) { holes_.insert(as_hole(range)); }
    void erase(std::uint32_t range) { holes_.erase(holes_.at_least(as_hole(range))); }

    packing::Holes::Place place_for(std::int64_t size, std::int64_t alignment) const {
        auto place = holes_.at_least({size, 0, 0});
        for (int tried = 0; !holes_.is_end(place) && tried < kCandidates; ++tried) {
            const auto &[bytes, offset, range] = holes_[place];
            if (align_up(offset, alignment) - offset + size <= bytes)
                return place;
            place = holes_.next(place);
        }
        return holes_.at_least({size + alignment - 1, 0, 0});
    }

    /// Returns a large enough free range at the top, which raises the high-water mark.
    std::uint32_t raised(std::int64_t size, std::int64_t alignment) {
        if (top_ == kNone || !ranges_[top_].free) {
            const std::int64_t mark = top_ == kNone ? 0 : ranges_[top_].offset + ranges_[top_].size;
            const std::uint32_t range = make({mark, 0, top_, kNone, true});
            if (top_ != kNone)
                ranges_[top_].above = range;
            top_ = range;
        } else {
            erase(top_);
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
        insert(hole);
    }

    void cut_above(std::uint32_t range, std::int64_t size) {
        const std::uint32_t above = ranges_[range].above;
        const Range cut = ranges_[range];
        const std::uint32_t hole = make({cut.offset + size, cut.size - size, range, above, true});
        (above == kNone ? top_ : ranges_[above].below) = hole;
        ranges_[range].above = hole;
        ranges_[range].size = size;
        insert(hole);
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
    packing::Holes holes_;
    std::uint32_t top_ = kNone;
};

/// Returns the starts and stops of the buffers, numbered by their starts: twice the number for a
/// start, one more for a stop. In a step stops come first; empty buffers are left out.
std::vector<std::uint32_t> events_of(std::span<const std::int64_t> size,
                                     std::span<const std::int64_t> start,
                                     std::span<const std::int64_t> stop) {
    const packing::Rows stopping = packing::rising(stop);
    std::vector<std::uint32_t> events;
    events.reserve(2 * start.size());
    const auto add = [&](std::uint32_t buffer, std::uint32_t stops) {
        if (size[buffer] > 0)
            events.push_back(2 * buffer + stops);
    };
    auto next = stopping.begin();
    for (std::uint32_t buffer = 0; buffer < start.size(); ++buffer) {
        for (; stop[*next] <= start[buffer]; ++next)
            add(*next, 1);
        add(buffer, 0);
    }
    for (; next != stopping.end(); ++next)
        add(*next, 1);
    return events;
}

/// Returns offsets of the buffers numbered by their starts, in the order of the events. Memory that
/// the next events touch is prefetched, because with many buffers no cache holds it.
std::vector<std::int64_t> offsets_in_order(std::span<const std::int64_t> size,
                                           std::span<const std::int64_t> alignment,
                                           std::span<const std::uint32_t> events) {
    std::vector<std::int64_t> offset(size.size(), 0);
    std::vector<std::uint32_t> range_of(size.size());
    Arena arena;
    for (std::size_t at = 0; at < events.size(); ++at) {
        if (at + 4 * kAhead < events.size()) {
            __builtin_prefetch(&range_of[events[at + 4 * kAhead] / 2]);
            arena.expect(range_of[events[at + 2 * kAhead] / 2]);
            arena.expect_beside(range_of[events[at + kAhead] / 2]);
        }
        const std::uint32_t buffer = events[at] / 2;
        if (events[at] % 2 == 1) {
            arena.give_back(range_of[buffer]);
        } else {
            range_of[buffer] = arena.take(size[buffer], alignment[buffer]);
            offset[buffer] = arena.offset(range_of[buffer]);
        }
    }
    return offset;
}

} // namespace

Offsets best_fit(const Buffers &buffers) {
    const packing::Rows by_start = packing::rising(buffers.start);
    const auto in_order = [&](std::span<const std::int64_t> column) {
        std::vector<std::int64_t> sorted(column.size());
        std::transform(by_start.begin(), by_start.end(), sorted.begin(),
                       [&](std::uint32_t row) { return column[row]; });
        return sorted;
    };
    const std::vector<std::int64_t> size = in_order(buffers.size);
    const std::vector<std::uint32_t> events =
        events_of(size, in_order(buffers.start), in_order(buffers.stop));
    const std::vector<std::int64_t> offset =
        offsets_in_order(size, in_order(buffers.alignment), events);
    Offsets offsets(size.size());
    for (std::size_t at = 0; at < offset.size(); ++at)
        offsets[by_start[at]] = offset[at];
    return offsets;
}

} // namespace tightship::place
