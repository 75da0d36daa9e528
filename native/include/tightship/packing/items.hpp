/// Placement of items, sets of rectangles that move as one, among fixed rectangles in several
/// banks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tightship::packing {

/// Rectangle of steps [start, stop) by bytes [bottom, top) above the base of an item or of a bank.
struct Rectangle {
    std::int64_t owner; // item, or bank
    std::int64_t start;
    std::int64_t stop;
    std::int64_t bottom;
    std::int64_t top;
};

/// Columns of m items. Item i consists of the rectangles of owner i.
struct Items {
    std::span<const Rectangle> rectangles;   // by rising owner
    std::span<const std::int64_t> alignment; // of the base: a power of two, ...
    std::span<const std::int64_t> remainder; // ... and what the base leaves when divided by it
    std::span<const std::int64_t> pinned;    // the base, or -1
    std::span<const std::int64_t> banks;     // bit b: may lie in bank b; not 0
    std::span<const std::int64_t> top;       // bytes from the base to where the item ends

    std::size_t count() const { return alignment.size(); }
};

struct Banks {
    std::span<const std::int64_t> capacity; // bytes
    std::span<const std::int64_t> by_cost;  // the cheapest first
    std::span<const Rectangle> forbidden;   // owner: the bank
};

struct Places {
    std::vector<std::int64_t> base;
    std::vector<std::int64_t> bank;
};

/// Places pinned items first, then the others in the given order: each in the cheapest bank that it
/// fits into, as low as possible; if it fits into none, in the bank that it exceeds least. O(m k)
/// for k rectangles that meet an item in time.
Places first_fit(const Items &items, const Banks &banks, std::span<const std::int64_t> order);

} // namespace tightship::packing
