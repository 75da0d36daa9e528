/// Kernels that write elements by their position: lookups, fills, triangles, one-hots, ranges.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <string>

namespace tightship::kernels {

/// Makes a lookup. Operands: source, fill if `has_fill`, row-major target. The sum of an element's
/// entries, one for each axis, is its byte offset in the source; if an entry is negative, the
/// element is the fill, or zero without one. An entry stands for `items` adjacent elements.
std::shared_ptr<const Kernel> lookup(int64_t item_bytes, int64_t items, bool has_fill,
                                     const std::vector<Dims> &tables);

/// Element, as bytes, that fills a shape.
struct Fill {
    std::string element;
    int64_t offset_bytes;
    Dims shape, strides;
};

/// Makes fills of one target, in the order given.
std::shared_ptr<const Kernel> fills(const std::vector<Fill> &fills);

/// Makes a Trilu of the innermost two axes, with zeros outside the triangle. Operands: source,
/// diagonal (one int64) if `has_diagonal`, target, which may be the source.
std::shared_ptr<const Kernel> triangle(int64_t item_bytes, bool upper, bool has_diagonal,
                                       const Dims &shape, const Dims &source_strides);

/// Makes a OneHot; null if `dtype` is not a number's. Operands: indices of `dtype`, off and on
/// values, row-major target (outer, depth, inner).
std::shared_ptr<const Kernel> one_hot(int64_t item_bytes, const std::string &dtype,
                                      const std::array<int64_t, 3> &shape);

/// Makes a Range; null if `dtype` is not a number's. Operands: start, step, target (`count`).
std::shared_ptr<const Kernel> ramp(const std::string &dtype, int64_t count);

} // namespace tightship::kernels
