#include "tightship/place.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

namespace tightship::place {
namespace {

/// One end of a lifetime. Stops come before starts in the same step.
struct Event {
    std::int64_t step;
    bool is_start;
    std::size_t buffer;

    auto operator<=>(const Event &) const = default;
};

std::vector<Event> events_of(const Buffers &buffers) {
    std::vector<Event> events;
    events.reserve(2 * buffers.count());
    for (std::size_t i = 0; i < buffers.count(); ++i) {
        if (buffers.size[i] == 0)
            continue;
        events.push_back({buffers.start[i], true, i});
        events.push_back({buffers.stop[i], false, i});
    }
    std::sort(events.begin(), events.end());
    return events;
}

struct Rectangle {
    std::int64_t offset;
    std::int64_t top;
    std::int64_t start;
    std::int64_t stop;
};

/// Rectangles placed so far, in offset order.
class Floor {
  public:
    explicit Floor(const Buffers &buffers) : buffers_(buffers) {
        rectangles_.reserve(buffers.count());
    }

    std::int64_t lowest(std::size_t buffer) const {
        std::int64_t offset = 0;
        for (const Rectangle &placed : rectangles_) {
            if (!meets(buffer, placed))
                continue;
            if (placed.offset >= offset + buffers_.size[buffer])
                break;
            offset = above(placed, offset, buffer);
        }
        return offset;
    }

    std::int64_t tightest(std::size_t buffer) const {
        std::int64_t offset = 0;
        std::int64_t best = -1;
        std::int64_t best_slack = std::numeric_limits<std::int64_t>::max();
        for (const Rectangle &placed : rectangles_) {
            if (!meets(buffer, placed))
                continue;
            const std::int64_t slack = placed.offset - offset - buffers_.size[buffer];
            if (slack >= 0 && slack < best_slack) {
                best_slack = slack;
                best = offset;
            }
            offset = above(placed, offset, buffer);
        }
        return best >= 0 ? best : offset;
    }

    void add(std::size_t buffer, std::int64_t offset) {
        const auto position = std::upper_bound(
            rectangles_.begin(), rectangles_.end(), offset,
            [](std::int64_t value, const Rectangle &placed) { return value < placed.offset; });
        rectangles_.insert(position, {offset, offset + buffers_.size[buffer],
                                      buffers_.start[buffer], buffers_.stop[buffer]});
    }

  private:
    bool meets(std::size_t buffer, const Rectangle &placed) const {
        return placed.start < buffers_.stop[buffer] && buffers_.start[buffer] < placed.stop;
    }

    std::int64_t above(const Rectangle &placed, std::int64_t offset, std::size_t buffer) const {
        return std::max(offset, align_up(placed.top, buffers_.alignment[buffer]));
    }

    const Buffers &buffers_;
    std::vector<Rectangle> rectangles_;
};

template <typename Choose>
Offsets place_in_order(const Buffers &buffers, Order order, Choose choose) {
    Offsets offsets(buffers.count(), 0);
    Floor floor(buffers);
    for (const std::int64_t index : order) {
        const auto buffer = static_cast<std::size_t>(index);
        if (buffers.size[buffer] == 0)
            continue;
        offsets[buffer] = choose(floor, buffer);
        floor.add(buffer, offsets[buffer]);
    }
    return offsets;
}

/// Tightest gap between live ranges sorted by offset, the gap below `high_water` included;
/// otherwise the first offset above all of them.
std::int64_t tightest_free(const std::vector<std::pair<std::int64_t, std::int64_t>> &live,
                           std::int64_t high_water, std::int64_t size, std::int64_t alignment) {
    std::int64_t offset = 0;
    std::int64_t best = -1;
    std::int64_t best_slack = std::numeric_limits<std::int64_t>::max();
    const auto consider = [&](std::int64_t end) {
        const std::int64_t slack = end - offset - size;
        if (slack >= 0 && slack < best_slack) {
            best_slack = slack;
            best = offset;
        }
    };
    for (const auto &[begin, end] : live) {
        consider(begin);
        offset = align_up(end, alignment);
    }
    consider(high_water);
    return best >= 0 ? best : offset;
}

struct Block {
    std::int64_t size = 0;
    std::int64_t alignment = 1;
};

using FreeBox = std::set<std::pair<std::int64_t, std::size_t>>; // (size, block)

/// Whether the larger of two sizes is at most `range` times the smaller.
bool match(std::int64_t smaller, std::int64_t larger, std::int64_t range) {
    return (larger - 1) / range < smaller;
}

/// The block a buffer of `size` bytes takes out of the box; `none` if no block matches.
std::size_t take(FreeBox &box, std::int64_t size, std::int64_t match_range, std::size_t none) {
    const auto at_least = box.lower_bound({size, 0});
    auto taken = box.end();
    if (at_least != box.end() && match(size, at_least->first, match_range))
        taken = at_least;
    else if (at_least != box.begin() && match(std::prev(at_least)->first, size, match_range))
        taken = std::prev(at_least);
    if (taken == box.end())
        return none;
    const std::size_t block = taken->second;
    box.erase(taken);
    return block;
}

} // namespace

std::int64_t peak(const Buffers &buffers, std::span<const std::int64_t> offsets) {
    std::int64_t highest = 0;
    for (std::size_t i = 0; i < buffers.count(); ++i)
        highest = std::max(highest, offsets[i] + buffers.size[i]);
    return highest;
}

std::int64_t lower_bound(const Buffers &buffers) {
    std::int64_t unit = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < buffers.count(); ++i)
        if (buffers.size[i] > 0)
            unit = std::min(unit, buffers.alignment[i]);
    std::int64_t load = 0;
    std::int64_t bound = 0;
    std::multiset<std::int64_t> padding;
    for (const Event &event : events_of(buffers)) {
        const std::int64_t rounded = align_up(buffers.size[event.buffer], unit);
        const std::int64_t padded = rounded - buffers.size[event.buffer];
        if (event.is_start) {
            load += rounded;
            padding.insert(padded);
            bound = std::max(bound, load - *padding.rbegin());
        } else {
            load -= rounded;
            padding.erase(padding.find(padded));
        }
    }
    return bound;
}

Offsets first_fit(const Buffers &buffers, Order order) {
    return place_in_order(buffers, order, [](const Floor &floor, std::size_t buffer) {
        return floor.lowest(buffer);
    });
}

Offsets best_gap(const Buffers &buffers, Order order) {
    return place_in_order(buffers, order, [](const Floor &floor, std::size_t buffer) {
        return floor.tightest(buffer);
    });
}

Offsets best_fit(const Buffers &buffers) {
    Offsets offsets(buffers.count(), 0);
    std::vector<std::pair<std::int64_t, std::int64_t>> live;
    std::int64_t high_water = 0;
    for (const Event &event : events_of(buffers)) {
        const std::int64_t size = buffers.size[event.buffer];
        std::int64_t &offset = offsets[event.buffer];
        if (event.is_start)
            offset = tightest_free(live, high_water, size, buffers.alignment[event.buffer]);
        const std::pair range{offset, offset + size};
        const auto position = std::lower_bound(live.begin(), live.end(), range);
        if (event.is_start) {
            live.insert(position, range);
            high_water = std::max(high_water, range.second);
        } else {
            live.erase(position);
        }
    }
    return offsets;
}

Offsets shared_objects(const Buffers &buffers, std::int64_t match_range) {
    std::vector<std::size_t> block_of(buffers.count(), 0);
    std::vector<Block> blocks;
    FreeBox box;
    for (const Event &event : events_of(buffers)) {
        const std::size_t buffer = event.buffer;
        std::size_t &index = block_of[buffer];
        if (!event.is_start) {
            if (match_range > 0)
                box.insert({blocks[index].size, index});
            continue;
        }
        index = take(box, buffers.size[buffer], match_range, blocks.size());
        if (index == blocks.size())
            blocks.emplace_back();
        Block &block = blocks[index];
        block.size = std::max(block.size, buffers.size[buffer]);
        block.alignment = std::max(block.alignment, buffers.alignment[buffer]);
    }
    Offsets base(blocks.size(), 0);
    std::int64_t top = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        base[i] = align_up(top, blocks[i].alignment);
        top = base[i] + blocks[i].size;
    }
    Offsets offsets(buffers.count(), 0);
    for (std::size_t i = 0; i < buffers.count(); ++i)
        if (buffers.size[i] > 0)
            offsets[i] = base[block_of[i]];
    return offsets;
}

} // namespace tightship::place
