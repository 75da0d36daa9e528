#include "tightship/packing/skyline.hpp"

#include <algorithm>
#include <limits>

namespace tightship::packing {

/// Renumbers steps by their order among those in which a lifetime starts or stops.
Skyline::Steps::Steps(const place::Buffers &buffers) {
    for (std::uint32_t i = 0; i < buffers.count(); ++i)
        if (buffers.size[i] > 0)
            solid.push_back(i);
    std::vector<std::int64_t> ends;
    ends.reserve(2 * solid.size());
    for (const std::uint32_t i : solid)
        ends.push_back(buffers.start[i]);
    for (const std::uint32_t i : solid)
        ends.push_back(buffers.stop[i]);
    start.resize(solid.size());
    stop.resize(solid.size());
    std::int64_t last = 0;
    for (const std::uint32_t end : rising(ends)) {
        if (count == 0 || ends[end] != last)
            ++count;
        last = ends[end];
        (end < solid.size() ? start[end] : stop[end - solid.size()]) = count - 1;
    }
}

Skyline::Skyline(const place::Buffers &buffers)
    : buffers_(buffers), steps_(buffers), waiting_(steps_.start, steps_.stop) {}

place::Offsets Skyline::place(place::Order order) {
    place::Offsets offsets(buffers_.count(), 0);
    std::vector<std::uint32_t> row_of(buffers_.count());
    for (std::uint32_t row = 0; row < steps_.solid.size(); ++row)
        row_of[steps_.solid[row]] = row;
    std::vector<std::uint32_t> rank(steps_.solid.size());
    Rows by_rank;
    by_rank.reserve(rank.size());
    for (const std::int64_t buffer : order) {
        if (buffers_.size[buffer] == 0)
            continue;
        rank[row_of[buffer]] = static_cast<std::uint32_t>(by_rank.size());
        by_rank.push_back(row_of[buffer]);
    }
    waiting_.fill(rank);
    intervals_.assign(1, {0, 0, steps_.count, kNone, kNone});
    unused_.clear();
    std::uint32_t current = 0;
    for (std::size_t left = by_rank.size(); left > 0;) {
        current = valley(current);
        const Interval &low = intervals_[current];
        const auto first = waiting_.first_within(low.start, low.stop);
        if (!first) {
            raise(current);
            continue;
        }
        const std::uint32_t row = by_rank[*first];
        const std::uint32_t buffer = steps_.solid[row];
        offsets[buffer] = place::align_up(low.height, buffers_.alignment[buffer]);
        waiting_.erase(row);
        current = fill(current, row, offsets[buffer] + buffers_.size[buffer]);
        --left;
    }
    return offsets;
}

std::int64_t Skyline::height(std::uint32_t interval) const {
    return interval == kNone ? std::numeric_limits<std::int64_t>::max()
                             : intervals_[interval].height;
}

/// Returns the valley reached by descending from an interval.
std::uint32_t Skyline::valley(std::uint32_t from) const {
    for (;;) {
        const Interval &here = intervals_[from];
        if (height(here.left) < here.height)
            from = here.left;
        else if (height(here.right) < here.height)
            from = here.right;
        else
            return from;
    }
}

/// Puts a buffer with this top into a valley; returns the interval from which to search for the
/// next valley.
std::uint32_t Skyline::fill(std::uint32_t valley, std::uint32_t row, std::int64_t top) {
    const Interval low = intervals_[valley];
    const std::uint32_t start = steps_.start[row];
    const std::uint32_t stop = steps_.stop[row];
    intervals_[valley] = {top, start, stop, low.left, low.right};
    std::uint32_t next = valley;
    if (stop < low.stop) {
        next = make({low.height, stop, low.stop, valley, low.right});
        intervals_[valley].right = next;
        if (low.right != kNone)
            intervals_[low.right].left = next;
    } else if (height(low.right) == top) {
        join_right(valley);
    }
    if (low.start < start) {
        next = make({low.height, low.start, start, low.left, valley});
        intervals_[valley].left = next;
        if (low.left != kNone)
            intervals_[low.left].right = next;
    } else if (height(low.left) == top) {
        join_left(valley);
    }
    return next;
}

/// Raises a valley to its lower neighbour, with which it merges.
void Skyline::raise(std::uint32_t valley) {
    Interval &low = intervals_[valley];
    low.height = std::min(height(low.left), height(low.right));
    if (height(low.left) == low.height)
        join_left(valley);
    if (height(low.right) == low.height)
        join_right(valley);
}

void Skyline::join_left(std::uint32_t interval) {
    Interval &joined = intervals_[interval];
    unused_.push_back(joined.left);
    joined.start = intervals_[joined.left].start;
    joined.left = intervals_[joined.left].left;
    if (joined.left != kNone)
        intervals_[joined.left].right = interval;
}

void Skyline::join_right(std::uint32_t interval) {
    Interval &joined = intervals_[interval];
    unused_.push_back(joined.right);
    joined.stop = intervals_[joined.right].stop;
    joined.right = intervals_[joined.right].right;
    if (joined.right != kNone)
        intervals_[joined.right].left = interval;
}

std::uint32_t Skyline::make(const Interval &interval) {
    if (unused_.empty()) {
        intervals_.push_back(interval);
        return static_cast<std::uint32_t>(intervals_.size() - 1);
    }
    const std::uint32_t reused = unused_.back();
    unused_.pop_back();
    intervals_[reused] = interval;
    return reused;
}

} // namespace tightship::packing
