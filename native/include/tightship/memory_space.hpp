/// Positions of operands before they have addresses.
#pragma once

#include <cstdint>

namespace tightship {

/// Base of an offset. Numbers from `kExternal` on are external slots (inputs, outputs).
enum Space : uint32_t { kArena = 0, kWeights = 1, kExternal = 2 };

/// Position `offset_bytes` from the base of `space`; `space - kExternal` is an external slot.
struct Place {
    uint32_t space;
    int64_t offset_bytes;
    bool operator==(const Place &) const = default;
};

} // namespace tightship
