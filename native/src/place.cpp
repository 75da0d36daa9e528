#include "tightship/place.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "tightship/packing/timeline.hpp"

namespace tightship::place {
namespace {

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

Offsets shared_objects(const Buffers &buffers, std::int64_t match_range) {
    std::vector<std::size_t> block_of(buffers.count(), 0);
    std::vector<Block> blocks;
    FreeBox box;
    packing::walk(
        buffers,
        [&](std::uint32_t buffer) {
            std::size_t &index = block_of[buffer];
            index = take(box, buffers.size[buffer], match_range, blocks.size());
            if (index == blocks.size())
                blocks.emplace_back();
            Block &block = blocks[index];
            block.size = std::max(block.size, buffers.size[buffer]);
            block.alignment = std::max(block.alignment, buffers.alignment[buffer]);
        },
        [&](std::uint32_t buffer) {
            if (match_range > 0)
                box.insert({blocks[block_of[buffer]].size, block_of[buffer]});
        });
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
