/// Kernels that order the elements along an axis, and running sums.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/element_type.hpp"

#include <memory>

namespace tightship::kernels {

/// Shape of a row-major operand as (before, along, after) the axis.
struct Line {
    int64_t before, along, after;
};

/// Makes an ArgMax or ArgMin, with the first or last of equal elements; a NaN is the largest and
/// the smallest. Operands: source, target (int64). The axis is not empty. Null for narrow floats,
/// bool and wide unsigned integers.
std::shared_ptr<const Kernel> position(ElementType type, Line line, bool is_largest,
                                       bool takes_last);

/// Makes a Hardmax: one at the first largest element, else zero; null except for float32 and
/// float64. Operands: source, target, which may be the source.
std::shared_ptr<const Kernel> hardmax(ElementType type, Line line);

/// Makes a TopK: the `count` largest or smallest elements, best first, equal ones by index. A NaN
/// is larger than all numbers. Operands: source, values, indices (int64), scratch. Null except for
/// floats and integers of 32 and 64 bits.
std::shared_ptr<const Kernel> best(ElementType type, Line line, int64_t count, bool is_largest);

/// Makes a CumSum, which includes each element itself or not, from the first or from the last on.
/// Operands: source, target, which may be the source. Null as `best` is.
std::shared_ptr<const Kernel> running_sum(ElementType type, Line line, bool is_exclusive,
                                          bool is_reverse);

} // namespace tightship::kernels
