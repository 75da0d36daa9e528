#include "tightship/packing/place.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "tightship/packing/floor.hpp"
#include "tightship/packing/timeline.hpp"

namespace tightship::place {
namespace {

/// Places buffers in the lowest or the tightest gap among those before that are live in a common
/// step.
Offsets placed(const Buffers &buffers, Order order, bool is_lowest) {
    const auto meet = [&](std::size_t a, std::size_t b) { return buffers.meet(a, b); };
    packing::Floor floor(buffers.size, buffers.alignment, meet);
    return packing::place_in_order(floor, order, is_lowest);
}

struct Block {
    std::int64_t size = 0;
    std::int64_t alignment = 1;
};

using FreeBox = std::set<std::pair<std::int64_t, std::size_t>>; // (size, block)

/// Returns whether the larger of two sizes is at most `range` times the smaller.
bool match(std::int64_t smaller, std::int64_t larger, std::int64_t range) {
    return (larger - 1) / range < smaller;
}

/// Takes the block for a buffer of `size` bytes out of the box; `none` if no block matches.
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
    return placed(buffers, order, true);
}

Offsets best_gap(const Buffers &buffers, Order order) {
    return placed(buffers, order, false);
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
