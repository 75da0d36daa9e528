#include <algorithm>
#include <limits>
#include <set>

#include "tightship/packing/timeline.hpp"

namespace tightship::place {

std::int64_t lower_bound(const Buffers &buffers) {
    std::int64_t unit = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < buffers.count(); ++i)
        if (buffers.size[i] > 0)
            unit = std::min(unit, buffers.alignment[i]);
    std::int64_t load = 0;
    std::int64_t bound = 0;
    std::multiset<std::int64_t> padding{0};
    const auto padding_of = [&](std::uint32_t i) {
        return align_up(buffers.size[i], unit) - buffers.size[i];
    };
    packing::walk(
        buffers,
        [&](std::uint32_t i) {
            load += align_up(buffers.size[i], unit);
            if (const std::int64_t padded = padding_of(i); padded > 0)
                padding.insert(padded);
            bound = std::max(bound, load - *padding.rbegin());
        },
        [&](std::uint32_t i) {
            load -= align_up(buffers.size[i], unit);
            if (const std::int64_t padded = padding_of(i); padded > 0)
                padding.erase(padding.find(padded));
        });
    return bound;
}

} // namespace tightship::place
