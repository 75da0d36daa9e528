/// Exact search for a placement of items in banks, within capacities, a cost and a peak.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tightship/packing/items.hpp"
#include "tightship/search/fit.hpp"

namespace tightship::search {

/// Limits of the search, besides the capacities.
struct ItemLimits {
    std::int64_t cost; // of all items together, above what the cheapest bank charges for them
    std::int64_t peak; // the sum of the largest offsets used in each bank
};

struct BankCosts {
    std::span<const std::int64_t> cost;   // of each bank, for a byte
    std::span<const std::int64_t> charge; // bytes of each item that are charged for
};

struct ItemAnswer {
    Answer found;                    // offsets in the bank; a conflict of items
    std::vector<std::int64_t> banks; // of each item, of `fits`
};

/// Searches for a placement. REQUIRES: forbidden rectangles of a bank are disjoint, and so are
/// those of an item.
ItemAnswer fit_items(const packing::Items &items, const packing::Banks &banks,
                     const BankCosts &costs, const ItemLimits &item_limits, const Limits &limits);

} // namespace tightship::search
