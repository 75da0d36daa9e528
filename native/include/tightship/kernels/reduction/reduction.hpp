/// Kernels that make one element of many.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/element_type.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <string_view>

namespace tightship::kernels {

/// Axes that are kept and axes that are reduced; strides in bytes.
struct ReductionSpec {
    std::string_view name;                     ///< of ONNX's operator
    ElementType type;                          ///< of source and target
    Dims kept_shape, kept_source, kept_target; ///< the lengths and strides of axes that stay
    Dims reduced_shape, reduced_source;
};

/// Source, target. Sums are kept in float64, or in integers of 64 bits; a largest or smallest
/// element in its own precision. Null where no kernel
/// covers the operator with this type.
std::shared_ptr<const Kernel> reduction(const ReductionSpec &spec);

} // namespace tightship::kernels
