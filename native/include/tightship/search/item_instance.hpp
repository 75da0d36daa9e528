/// Items and fixed rectangles in the form that the search uses.
///
/// Banks lie one above the other in one range of offsets, the cheapest lowest, so that a lower
/// offset chooses a cheaper bank. An item is a set of rectangles that move as one; its base may lie
/// in a few ranges, one in each allowed bank. Forbidden rectangles are items with a single place.
/// Steps are replaced by sections, largest sets of rectangles that are live together.
#pragma once

#include <cassert>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tightship/packing/items.hpp"
#include "tightship/search/fit_items.hpp"
#include "tightship/search/order.hpp"

namespace tightship::search {

struct ItemInstance {
    static constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;

    struct Range { // bases [first, last], in one bank
        std::int64_t first, last;
        int bank; // by rising cost
    };
    struct Meeting { // at base b excludes bases of `other` between b + below and b + above
        int other;
        std::int64_t below, above;
    };
    struct Piece { // bytes [bottom, top) above the base of an item
        int item;
        std::int64_t bottom, top;
    };
    struct Bank {
        std::int64_t index;          // in the problem
        std::int64_t floor, ceiling; // in the range of all banks
        std::int64_t cost;           // of a byte, above what the cheapest charges
    };

    int items = 0;    // to be placed; forbidden ones follow them
    bool fits = true; // false if offsets leave int64, or too many items meet
    ItemLimits limits{};
    std::vector<Bank> banks;
    std::vector<std::int64_t> alignment, remainder; // of each item's base
    std::vector<std::int64_t> charge;               // bytes that a bank charges for
    std::vector<std::int64_t> top;                  // bytes up to the highest of the item
    std::vector<int> ranges_begin, meetings_begin, sections_begin; // of each item; one more
    std::vector<Range> ranges;
    std::vector<Meeting> meetings;
    std::vector<int> item_sections; // sections that an item has pieces in, rising
    std::vector<int> pieces_begin;  // of each section; one more
    std::vector<Piece> pieces;
    Keys keys; // by which orders sort the items

    int count() const { return static_cast<int>(alignment.size()); }
    int sections() const { return static_cast<int>(pieces_begin.size()) - 1; }
    /// Returns the pairs of items that a decision visits, roughly.
    std::int64_t pairs_a_node() const;

    std::span<const Range> ranges_of(int item) const {
        return std::span(ranges).subspan(ranges_begin[item],
                                         ranges_begin[item + 1] - ranges_begin[item]);
    }
    std::span<const Meeting> meetings_of(int item) const {
        return std::span(meetings).subspan(meetings_begin[item],
                                           meetings_begin[item + 1] - meetings_begin[item]);
    }
    std::span<const int> sections_of(int item) const {
        return std::span(item_sections)
            .subspan(sections_begin[item], sections_begin[item + 1] - sections_begin[item]);
    }
    std::span<const Piece> pieces_of(int section) const {
        return std::span(pieces).subspan(pieces_begin[section],
                                         pieces_begin[section + 1] - pieces_begin[section]);
    }

    /// Returns the lowest base of an item that is not below `base`; kFar if there is none.
    std::int64_t base_from(int item, std::int64_t base) const {
        for (const Range &range : ranges_of(item)) {
            const std::int64_t from = base > range.first ? base : range.first;
            const std::int64_t aligned = from + ((remainder[item] - from) & (alignment[item] - 1));
            if (aligned <= range.last)
                return aligned;
        }
        return kFar;
    }

    /// Returns the bank that an item is in at one of its bases.
    int bank_at(int item, std::int64_t base) const {
        for (const Range &range : ranges_of(item))
            if (base <= range.last)
                return range.bank;
        assert(false);
        return 0;
    }
};

inline const Keys &keys_of(const ItemInstance &instance) {
    return instance.keys;
}

/// Builds the instance. REQUIRES: forbidden rectangles of a bank are disjoint.
ItemInstance instance_of(const packing::Items &items, const packing::Banks &banks,
                         const BankCosts &costs, const ItemLimits &limits);

} // namespace tightship::search
