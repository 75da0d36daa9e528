/// Where operands are before anything has an address.
#pragma once

#include <cstdint>

namespace tightship {

/// What an offset is counted from. External slots (inputs, outputs) follow.
enum Space : uint32_t { kArena = 0, kWeights = 1, kExternal = 2 };

/// `offset_bytes` from the base of `space`; `space - kExternal` is the slot of an external one.
struct Place {
    uint32_t space;
    int64_t offset_bytes;
    bool operator==(const Place &) const = default;
};

} // namespace tightship
