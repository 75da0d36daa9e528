/// Distances in images, as callers in Python give them.
#pragma once

#include "tightship/kernels/convolution/depthwise.hpp"

#include <array>
#include <cstdint>

namespace tightship::bind {

/// Elements from one image, row, pixel and block of 16 channels to the next.
using Strides = std::array<int64_t, 4>;

inline kernels::ImageStrides image_strides(const Strides &strides) {
    return {strides[0], strides[1], strides[2], strides[3]};
}

} // namespace tightship::bind
