#include "tightship/search/fit.hpp"

#include <algorithm>

#include "tightship/search/descent.hpp"
#include "tightship/search/instance.hpp"
#include "tightship/search/race.hpp"

namespace tightship::search {
namespace {

/// Returns the ends of the ranges of buffers that share no section with those of another range.
std::vector<int> cuts_of(const Sections &sections) {
    std::vector<int> cuts;
    int reached = 0;
    for (int i = 0; i < static_cast<int>(sections.buffer.size()); ++i) {
        if (i > 0 && sections.begin[i] >= reached)
            cuts.push_back(i);
        reached = std::max(reached, sections.end[i]);
    }
    cuts.push_back(static_cast<int>(sections.buffer.size()));
    return cuts;
}

template <class Unit>
Answer fit_units(const place::Buffers &buffers, const Sections &sections, const Units &units,
                 Pins pins, std::int64_t capacity, Limits limits) {
    Answer answer{Verdict::fits, place::Offsets(buffers.count(), 0), {}};
    int from = 0;
    for (const int to : cuts_of(sections)) {
        const auto instance = instance_of<Unit>(buffers, sections, units, pins, capacity, from, to);
        Answer part = Race<Instance<Unit>, Descent<Unit>>(instance, limits).run();
        answer.nodes += part.nodes;
        answer.effort += part.effort;
        limits.effort = std::max<std::int64_t>(limits.effort - part.effort, 0);
        if (part.verdict != Verdict::fits) {
            answer.verdict = part.verdict;
            answer.offsets.clear();
            for (const std::int64_t i : part.conflict)
                answer.conflict.push_back(instance.buffer[i]);
            std::ranges::sort(answer.conflict);
            answer.bound = part.verdict == Verdict::open ? 0 : (capacity + 1) * units.bytes;
            return answer;
        }
        for (int i = 0; i < instance.count(); ++i)
            answer.offsets[instance.buffer[i]] = part.offsets[i] * units.bytes;
        from = to;
    }
    return answer;
}

} // namespace

Answer fit(const place::Buffers &buffers, Pins pins, std::int64_t capacity, const Limits &limits) {
    const Sections sections = sections_of(buffers);
    if (sections.buffer.empty())
        return {Verdict::fits, place::Offsets(buffers.count(), 0), {}};
    const Units units = units_of(buffers, sections, pins);
    const std::int64_t in_units = capacity / units.bytes;
    const std::int64_t used = pins.empty() ? std::min(in_units, units.total) : in_units;
    constexpr std::int64_t kSmall = std::int64_t{1} << 29;
    if (units.total < kSmall && used < kSmall)
        return fit_units<std::int32_t>(buffers, sections, units, pins, used, limits);
    return fit_units<std::int64_t>(buffers, sections, units, pins, used, limits);
}

} // namespace tightship::search
