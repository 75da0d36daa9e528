/// Scales of blocks of 256 elements, of which six bits each are packed in twelve bytes.
#pragma once

#include <cstdint>

namespace tightship::kernels {

/// Factor and least of each 32 elements.
struct SixBits {
    int factor, least;
};

/// Returns the numbers of group `group` of 8.
static inline SixBits six_bits(const uint8_t *packed, int group) {
    if (group < 4)
        return {packed[group] & 63, packed[group + 4] & 63};
    return {(packed[group + 4] & 15) | (packed[group - 4] >> 6 << 4),
            (packed[group + 4] >> 4) | (packed[group] >> 6 << 4)};
}

} // namespace tightship::kernels
