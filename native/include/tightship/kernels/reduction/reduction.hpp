/// Reductions of axes.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/element_type.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <string_view>

namespace tightship::kernels {

/// Kept and reduced axes; strides in bytes.
struct ReductionSpec {
    std::string_view name;                     ///< of ONNX's operator
    ElementType type;                          ///< of source and target
    Dims kept_shape, kept_source, kept_target; ///< lengths and strides of kept axes
    Dims reduced_shape, reduced_source;
};

/// Makes a reduction; null if no kernel covers the operator with this type. Operands: source,
/// target. Sums are computed in float64 or 64-bit integers; a largest or smallest element in its
/// own precision.
std::shared_ptr<const Kernel> reduction(const ReductionSpec &spec);

} // namespace tightship::kernels
