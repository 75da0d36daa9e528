#include "tightship/search/item_instance.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tightship::search {
namespace {

using packing::Rectangle;

constexpr std::int64_t kOffsetMax = std::int64_t{1} << 61;
constexpr std::size_t kMeetingsMax = 4'000'000;

/// Returns the highest offset that a placement may reach: pinned and forbidden bytes, and
/// everything above them.
std::int64_t reach_of(const packing::Items &items, const packing::Banks &banks,
                      std::span<const std::int64_t> top) {
    std::int64_t fixed = 0;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < items.count(); ++i) {
        fixed = std::max(fixed, std::max<std::int64_t>(items.pinned[i], 0) + top[i]);
        sum = std::min(kOffsetMax, sum + std::min(kOffsetMax, top[i] + items.alignment[i]));
    }
    for (const Rectangle &forbidden : banks.forbidden)
        fixed = std::max(fixed, forbidden.top);
    return std::min(kOffsetMax, std::min(kOffsetMax, fixed) + sum);
}

/// Lays banks one above the other; false if that exceeds the range of offsets.
bool stack_banks(ItemInstance &made, const packing::Items &items, const packing::Banks &banks,
                 std::span<const std::int64_t> cost) {
    const std::int64_t reach = reach_of(items, banks, made.top);
    std::int64_t coarsest = 1;
    for (const std::int64_t alignment : items.alignment)
        coarsest = std::max(coarsest, alignment);
    std::int64_t floor = 0;
    for (const std::int64_t bank : banks.by_cost) {
        const std::int64_t height = std::min(banks.capacity[bank], reach);
        made.banks.push_back({bank, floor, floor + height, cost[bank] - cost[banks.by_cost[0]]});
        floor += height;
        floor += -floor & (coarsest - 1);
        if (height >= kOffsetMax || floor >= kOffsetMax)
            return false;
    }
    return true;
}

void add_ranges(ItemInstance &made, const packing::Items &items, std::size_t item) {
    for (std::size_t i = 0; i < made.banks.size(); ++i) {
        const auto &bank = made.banks[i];
        if ((items.banks[item] >> bank.index & 1) == 0)
            continue;
        const bool pinned = items.pinned[item] >= 0;
        const std::int64_t first = bank.floor + (pinned ? items.pinned[item] : 0);
        const std::int64_t last = bank.ceiling - made.top[item];
        if (first <= last)
            made.ranges.push_back({first, pinned ? first : last, static_cast<int>(i)});
    }
}

/// Returns all rectangles by start, forbidden ones at their bytes in the stacked banks.
std::vector<Rectangle> rectangles_of(ItemInstance &made, const packing::Items &items,
                                     const packing::Banks &banks) {
    std::vector<Rectangle> every(items.rectangles.begin(), items.rectangles.end());
    for (std::size_t i = 0; i < made.banks.size(); ++i) {
        const auto &bank = made.banks[i];
        for (const Rectangle &forbidden : banks.forbidden) {
            const std::int64_t top = std::min(bank.floor + forbidden.top, bank.ceiling);
            if (forbidden.owner != bank.index || bank.floor + forbidden.bottom >= top)
                continue;
            every.push_back({made.count(), forbidden.start, forbidden.stop,
                             bank.floor + forbidden.bottom, top});
            made.alignment.push_back(1);
            made.remainder.push_back(0);
            made.charge.push_back(0);
            made.top.push_back(top);
            made.ranges_begin.push_back(static_cast<int>(made.ranges.size()));
            made.ranges.push_back({0, 0, static_cast<int>(i)});
        }
    }
    made.ranges_begin.push_back(static_cast<int>(made.ranges.size()));
    std::stable_sort(every.begin(), every.end(),
                     [](const Rectangle &a, const Rectangle &b) { return a.start < b.start; });
    return every;
}

/// Adds the sections of rectangles by start, each at the last start before a stop. Returns a flag
/// for each piece: 1 in the first section of its rectangle.
std::vector<char> add_sections(ItemInstance &made, const std::vector<Rectangle> &rectangles) {
    std::vector<std::int64_t> stops;
    for (const Rectangle &rectangle : rectangles)
        stops.push_back(rectangle.stop);
    std::sort(stops.begin(), stops.end());
    std::vector<int> live;
    std::vector<char> seen(rectangles.size(), 0);
    std::vector<char> is_new;
    std::vector<std::pair<int, int>> item_section;
    made.pieces_begin.push_back(0);
    std::size_t next = 0;
    for (std::size_t i = 0; i < rectangles.size(); ++i) {
        const std::int64_t step = rectangles[i].start;
        live.push_back(static_cast<int>(i));
        if (i + 1 < rectangles.size() && rectangles[i + 1].start == step)
            continue;
        std::erase_if(live, [&](int one) { return rectangles[one].stop <= step; });
        while (stops[next] <= step)
            ++next;
        if (i + 1 < rectangles.size() && rectangles[i + 1].start < stops[next])
            continue;
        for (const int one : live) {
            const auto item = static_cast<int>(rectangles[one].owner);
            made.pieces.push_back({item, rectangles[one].bottom, rectangles[one].top});
            item_section.emplace_back(item, made.sections());
            is_new.push_back(!std::exchange(seen[one], 1));
        }
        made.pieces_begin.push_back(static_cast<int>(made.pieces.size()));
    }
    std::sort(item_section.begin(), item_section.end());
    item_section.erase(std::unique(item_section.begin(), item_section.end()), item_section.end());
    for (const auto &[item, section] : item_section) {
        while (static_cast<int>(made.sections_begin.size()) <= item)
            made.sections_begin.push_back(static_cast<int>(made.item_sections.size()));
        made.item_sections.push_back(section);
    }
    made.sections_begin.resize(made.count() + 1, static_cast<int>(made.item_sections.size()));
    return is_new;
}

/// Adds the bases that items exclude for each other; false if there are too many pairs of items.
bool add_meetings(ItemInstance &made, const std::vector<char> &is_new) {
    std::vector<std::tuple<int, int, std::int64_t, std::int64_t>> found;
    for (int section = 0; section < made.sections(); ++section) {
        const auto pieces = made.pieces_of(section);
        const char *newly = is_new.data() + made.pieces_begin[section];
        const auto add = [&](const ItemInstance::Piece &one, const ItemInstance::Piece &other) {
            if (one.item != other.item && (one.item < made.items || other.item < made.items))
                found.emplace_back(one.item, other.item, one.bottom - other.top,
                                   one.top - other.bottom);
        };
        for (std::size_t i = 0; i < pieces.size(); ++i)
            for (std::size_t j = 0; newly[i] && j < pieces.size(); ++j) {
                add(pieces[i], pieces[j]);
                if (!newly[j])
                    add(pieces[j], pieces[i]);
            }
        if (found.size() > kMeetingsMax)
            return false;
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (const auto &[item, other, below, above] : found) {
        while (static_cast<int>(made.meetings_begin.size()) <= item)
            made.meetings_begin.push_back(static_cast<int>(made.meetings.size()));
        made.meetings.push_back({other, below, above});
    }
    made.meetings_begin.resize(made.count() + 1, static_cast<int>(made.meetings.size()));
    return true;
}

void add_keys(ItemInstance &made, const std::vector<Rectangle> &rectangles) {
    std::vector<double> load(made.sections(), 0);
    for (int section = 0; section < made.sections(); ++section)
        for (const auto &piece : made.pieces_of(section))
            load[section] += static_cast<double>(piece.top - piece.bottom);
    for (auto &key : made.keys)
        key.assign(made.count(), 0);
    for (const Rectangle &rectangle : rectangles) {
        const auto steps = static_cast<double>(rectangle.stop - rectangle.start);
        made.keys[kLifetime][rectangle.owner] += steps;
        made.keys[kArea][rectangle.owner] +=
            steps * static_cast<double>(rectangle.top - rectangle.bottom);
    }
    for (int item = 0; item < made.count(); ++item) {
        made.keys[kSize][item] = static_cast<double>(made.top[item]);
        for (const int section : made.sections_of(item))
            made.keys[kLoad][item] = std::max(made.keys[kLoad][item], load[section]);
    }
}

} // namespace

ItemInstance instance_of(const packing::Items &items, const packing::Banks &banks,
                         const BankCosts &costs, const ItemLimits &limits) {
    ItemInstance made;
    made.items = static_cast<int>(items.count());
    made.limits = limits;
    made.alignment.assign(items.alignment.begin(), items.alignment.end());
    made.remainder.assign(items.remainder.begin(), items.remainder.end());
    made.charge.assign(costs.charge.begin(), costs.charge.end());
    made.top.assign(items.top.begin(), items.top.end());
    made.fits = stack_banks(made, items, banks, costs.cost);
    if (!made.fits)
        return made;
    for (std::size_t item = 0; item < items.count(); ++item) {
        made.ranges_begin.push_back(static_cast<int>(made.ranges.size()));
        add_ranges(made, items, item);
    }
    const std::vector<Rectangle> rectangles = rectangles_of(made, items, banks);
    made.fits = add_meetings(made, add_sections(made, rectangles));
    add_keys(made, rectangles);
    return made;
}

std::int64_t ItemInstance::pairs_a_node() const {
    const auto all = static_cast<std::int64_t>(meetings.size() + pieces.size());
    return 32 * all / std::max(1, count()) + count();
}

} // namespace tightship::search
