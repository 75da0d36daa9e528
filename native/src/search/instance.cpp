#include "tightship/search/instance.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <tuple>

namespace tightship::search {
namespace {

/// Start or stop of a lifetime. Stops come before starts in the same step.
using Event = std::tuple<std::int64_t, bool, std::size_t>;

std::vector<Event> events_of(const place::Buffers &buffers) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < buffers.count(); ++i) {
        if (buffers.size[i] == 0)
            continue;
        events.emplace_back(buffers.start[i], true, i);
        events.emplace_back(buffers.stop[i], false, i);
    }
    std::sort(events.begin(), events.end());
    return events;
}

} // namespace

Sections sections_of(const place::Buffers &buffers) {
    Sections sections;
    std::vector<int> position(buffers.count());
    bool grown = false;
    for (const auto &[step, is_start, buffer] : events_of(buffers)) {
        if (is_start) {
            position[buffer] = static_cast<int>(sections.buffer.size());
            sections.buffer.push_back(static_cast<std::int64_t>(buffer));
            sections.begin.push_back(sections.count);
            sections.end.push_back(0);
        } else {
            sections.count += grown;
            sections.end[position[buffer]] = sections.count;
        }
        grown = is_start;
    }
    return sections;
}

Units units_of(const place::Buffers &buffers, const Sections &sections, Pins pins) {
    Units units;
    std::int64_t common = 0;
    std::int64_t coarsest = 1;
    for (const std::int64_t buffer : sections.buffer) {
        common = std::gcd(common, buffers.size[buffer]);
        if (!pins.empty() && pins[buffer] != kFree)
            common = std::gcd(common, pins[buffer]);
        coarsest = std::max(coarsest, buffers.alignment[buffer]);
    }
    if (common == 0)
        return units;
    units.bytes = common % coarsest == 0 ? common : std::gcd(common, coarsest);
    for (const std::int64_t buffer : sections.buffer) {
        units.size.push_back(buffers.size[buffer] / units.bytes);
        units.alignment.push_back(
            std::max<std::int64_t>(buffers.alignment[buffer] / units.bytes, 1));
        units.total += units.size.back() + units.alignment.back() - 1;
    }
    return units;
}

template <class Unit>
Instance<Unit> instance_of(const place::Buffers &buffers, const Sections &sections,
                           const Units &units, Pins pins, std::int64_t capacity, int from, int to) {
    Instance<Unit> made;
    made.capacity = static_cast<Unit>(capacity);
    const int base = sections.begin[from];
    int section_count = 0;
    for (int i = from; i < to; ++i) {
        const std::int64_t buffer = sections.buffer[i];
        made.size.push_back(static_cast<Unit>(units.size[i]));
        made.alignment.push_back(static_cast<Unit>(units.alignment[i]));
        const bool is_free = pins.empty() || pins[buffer] == kFree;
        made.pin.push_back(static_cast<Unit>(is_free ? kFree : pins[buffer] / units.bytes));
        made.aligned |= units.alignment[i] > 1;
        made.begin.push_back(sections.begin[i] - base);
        made.end.push_back(sections.end[i] - base);
        made.buffer.push_back(buffer);
        made.lifetime.push_back(buffers.stop[buffer] - buffers.start[buffer]);
        section_count = std::max(section_count, made.end.back());
    }
    std::vector<int> fill(section_count + 1, 0);
    made.starts.assign(section_count + 1, made.count());
    for (int i = made.count(); i-- > 0;) {
        made.starts[made.begin[i]] = i;
        ++fill[made.begin[i]];
        --fill[made.end[i]];
    }
    made.members_begin.assign(section_count + 1, 0);
    for (int section = 0, live = 0; section < section_count; ++section) {
        live += fill[section];
        made.members_begin[section + 1] = made.members_begin[section] + live;
    }
    made.members.resize(made.members_begin.back());
    std::copy_n(made.members_begin.begin(), section_count + 1, fill.begin());
    for (int i = 0; i < made.count(); ++i)
        for (int section = made.begin[i]; section < made.end[i]; ++section)
            made.members[fill[section]++] = i;
    return made;
}

template <class Unit> std::int64_t Instance<Unit>::pairs_a_node() const {
    std::int64_t neighbours = 0;
    for (int i = 0; i < count(); ++i) {
        neighbours += members_begin[begin[i] + 1] - members_begin[begin[i]];
        neighbours += starts[end[i]] - starts[begin[i] + 1];
    }
    return 4 * neighbours / count() + count() / 2;
}

template std::int64_t Instance<std::int32_t>::pairs_a_node() const;
template std::int64_t Instance<std::int64_t>::pairs_a_node() const;
template Instance<std::int32_t> instance_of(const place::Buffers &, const Sections &, const Units &,
                                            Pins, std::int64_t, int, int);
template Instance<std::int64_t> instance_of(const place::Buffers &, const Sections &, const Units &,
                                            Pins, std::int64_t, int, int);

} // namespace tightship::search
