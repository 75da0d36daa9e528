/// Pooling by the largest element, with the place of each.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/element_type.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>

namespace tightship::kernels {

/// Windows over each of `images` row-major images; vectors have an entry for each of one to three
/// spatial axes. `steps` are what a coordinate adds to a place in the image.
struct Windows {
    int64_t images;
    Dims image, positions, kernel, strides, dilations, pads, steps;
};

/// Makes a MaxPool that also finds places, counted over all images; the first of equal elements
/// counts, and a NaN only where it is the first. Operands: source, target, places (int64). Null
/// except for float32 and float64.
std::shared_ptr<const Kernel> largest_places(ElementType type, Windows windows);

} // namespace tightship::kernels
