/// Iteration over the starts and stops of lifetimes.
#pragma once

#include "tightship/packing/place.hpp"
#include "tightship/packing/rising.hpp"

namespace tightship::packing {

/// Calls `starts(buffer)` and `stops(buffer)` for every buffer that is not empty, in step order; in
/// a step stops come first, and then the lower index. O(n b) as `rising`, and 8 bytes a buffer.
template <typename Starts, typename Stops>
void walk(const place::Buffers &buffers, Starts starts, Stops stops) {
    const Rows starting = rising(buffers.start);
    const Rows stopping = rising(buffers.stop);
    auto next = stopping.begin();
    for (const std::uint32_t buffer : starting) {
        for (; buffers.stop[*next] <= buffers.start[buffer]; ++next)
            if (buffers.size[*next] > 0)
                stops(*next);
        if (buffers.size[buffer] > 0)
            starts(buffer);
    }
    for (; next != stopping.end(); ++next)
        if (buffers.size[*next] > 0)
            stops(*next);
}

} // namespace tightship::packing
