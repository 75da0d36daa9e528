/// Kernels that order the elements along an axis, or add them up one after another.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/element_type.hpp"

#include <memory>

namespace tightship::kernels {

/// A row-major operand seen as (before, along, after) the axis.
struct Line {
    int64_t before, along, after;
};

/// Source, target of int64: the index of the largest or smallest element, the first of equal
/// ones, or the last; a NaN is both. The axis is not empty. Null for narrow floats, bool and
/// wide unsigned integers.
std::shared_ptr<const Kernel> position(ElementType type, Line line, bool is_largest,
                                       bool takes_last);

/// Source, target: one at the first largest element, zero elsewhere. Target may be source. Null
/// but for float32 and float64.
std::shared_ptr<const Kernel> hardmax(ElementType type, Line line);

/// Source, values, indices of int64: the `count` largest or smallest elements, best first, the
/// lower index before the higher where they are equal. A NaN is larger than all numbers. Books
/// scratch. Null but for floats and integers of 32 and 64 bits.
std::shared_ptr<const Kernel> best(ElementType type, Line line, int64_t count, bool is_largest);

/// Source, target: the sum of the elements up to each one, itself included or not, from the
/// first or from the last on. Target may be source. Null as `best` is.
std::shared_ptr<const Kernel> running_sum(ElementType type, Line line, bool is_exclusive,
                                          bool is_reverse);

} // namespace tightship::kernels
