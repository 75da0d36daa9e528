/// Kernels that write elements by their position: tables, fills, triangles, marks, ramps.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <string>

namespace tightship::kernels {

/// Source, fill if `has_fill`, target: a row-major target of which each element is the sum of
/// its positions' table entries, a byte offset into the source, or what fills, where an entry is
/// negative. An entry stands for `items` elements that lie together; without a fill operand
/// zeros fill.
std::shared_ptr<const Kernel> lookup(int64_t item_bytes, int64_t items, bool has_fill,
                                     const std::vector<Dims> &tables);

/// One element, as bytes, all over a shape.
struct Fill {
    std::string element;
    int64_t offset_bytes;
    Dims shape, strides;
};

/// Target: fills in the order given.
std::shared_ptr<const Kernel> fills(const std::vector<Fill> &fills);

/// Source, diagonal (one int64) if `has_diagonal`, target: of each matrix, the innermost two
/// axes, the upper or lower triangle, zeros elsewhere. The target may be the source.
std::shared_ptr<const Kernel> triangle(int64_t item_bytes, bool upper, bool has_diagonal,
                                       const Dims &shape, const Dims &source_strides);

/// Indices of `dtype`, off and on, target (outer, depth, inner), row-major. Null where `dtype`
/// is no number.
std::shared_ptr<const Kernel> one_hot(int64_t item_bytes, const std::string &dtype,
                                      const std::array<int64_t, 3> &shape);

/// Start, step, target: `count` numbers of `dtype`; null where it is none.
std::shared_ptr<const Kernel> ramp(const std::string &dtype, int64_t count);

} // namespace tightship::kernels
