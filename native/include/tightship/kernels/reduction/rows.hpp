/// Kernels over rows of a row-major operand: normalization and softmax.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/element_type.hpp"

#include <memory>

namespace tightship::kernels {

/// Rows of `segments` parts of `segment_length` elements each. `scale` and `bias` have one
/// element for each element of a row, or, if `by_segment`, one for each part; those of a row
/// start at (row * segments) % `parameters` then.
struct NormalizationSpec {
    ElementType type; ///< of everything but the statistics, which are float32 or float64
    int64_t rows, segments, segment_length;
    bool by_segment;
    int64_t parameters; ///< elements of scale, and of bias
    bool has_scale, has_bias, has_mean, has_deviation;
    bool is_centered; ///< whether the mean is subtracted; if not, the variance is the mean square
    double epsilon;
};

/// Source, [scale], [bias], target, [means], [inverse deviations]. Target may be source. Null
/// for types that are no floats.
std::shared_ptr<const Kernel> normalization(const NormalizationSpec &spec);

/// Source, target, row-major as (before, along, after): softmax along the middle axis, or its
/// logarithm. Target may be source. Null but for float32 and float64.
std::shared_ptr<const Kernel> softmax(ElementType type, int64_t before, int64_t along,
                                      int64_t after, bool is_logarithm);

} // namespace tightship::kernels
