/// Replay of a recorded sequence of requests on a resource.
#pragma once

#include "tightship/resource/memory_resource.hpp"

#include <span>
#include <vector>

namespace tightship::resource {

struct Replayed {
    size_t peak_live_bytes = 0; ///< by requested sizes
    size_t peak_held_bytes = 0; ///< touched by the resource, read after each allocation
    // Largest live and held bytes in each of the requested number of parts of the sequence.
    std::vector<size_t> live_bytes;
    std::vector<size_t> held_bytes;
    size_t refused_count = 0;
    int64_t duration_ns = 0; ///< processor time of the thread
};

/// Allocates `sizes[i]` bytes into slot `slots[i]`, or frees the block of slot `~slots[i]`; frees
/// all at the end. If `part_count` is 0, held bytes are not read, which would take time. REQUIRES:
/// slots are below `slot_count`, and empty when a block is allocated into them.
Replayed replay(MemoryResource &resource, std::span<const int64_t> slots,
                std::span<const int64_t> sizes, size_t slot_count, size_t part_count);

} // namespace tightship::resource
