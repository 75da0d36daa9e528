/// A recorded sequence of requests, played to a resource.
#pragma once

#include "tightship/resource/memory_resource.hpp"

#include <span>
#include <vector>

namespace tightship::resource {

struct Replayed {
    size_t peak_live_bytes = 0; ///< as they were asked for
    size_t peak_held_bytes = 0; ///< what the resource had touched, looked at after each allocation
    // The most in each of as many parts of the sequence as were asked for.
    std::vector<size_t> live_bytes;
    std::vector<size_t> held_bytes;
    size_t refused_count = 0;
    int64_t duration_ns = 0; ///< processor time of the thread
};

/// Allocates `sizes[i]` bytes into slot `slots[i]`, or gives back what slot `~slots[i]` has; in the
/// end gives back all. Where `part_count` is 0, what is held is not looked at, and takes no time.
/// REQUIRES: slots are below `slot_count`, and free when something comes to them.
Replayed replay(MemoryResource &resource, std::span<const int64_t> slots,
                std::span<const int64_t> sizes, size_t slot_count, size_t part_count);

} // namespace tightship::resource
