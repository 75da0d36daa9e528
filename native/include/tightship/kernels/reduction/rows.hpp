/// Kernels over rows of a row-major operand: normalization and softmax.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/element_type.hpp"

#include <memory>

namespace tightship::kernels {

/// Normalization of rows of `segments` parts of `segment_length` elements each. `scale` and `bias`
/// have one element for each element of a row, or, if `by_segment`, for each part; those of a row
/// then start at (row * segments) % `parameters`.
struct NormalizationSpec {
    ElementType type; ///< of everything but the statistics, which are float32 or float64
    int64_t rows, segments, segment_length;
    bool by_segment;
    int64_t parameters; ///< elements of scale, and of bias
    bool has_scale, has_bias, has_mean, has_deviation;
    bool is_centered; ///< whether the mean is subtracted; if not, the variance is the mean square
    double epsilon;
};

/// Makes a normalization; null for types other than floats. Operands: source[, scale][, bias],
/// target, which may be the source[, means][, inverse deviations].
std::shared_ptr<const Kernel> normalization(const NormalizationSpec &spec);

/// Makes a softmax along the middle axis, or its logarithm; null except for float32 and float64.
/// Operands: source, target, row-major (before, along, after); the target may be the source.
std::shared_ptr<const Kernel> softmax(ElementType type, int64_t before, int64_t along,
                                      int64_t after, bool is_logarithm);

} // namespace tightship::kernels
