/// Kernels of training steps that oneDNN lacks: float32, on dense operands.
#pragma once

#include "tightship/kernel.hpp"

#include <array>
#include <memory>
#include <string>

namespace tightship::kernels {

/// Update of a weight and its optimizer state, in place.
struct UpdateSpec {
    std::string rule;            ///< SgdUpdate, MomentumUpdate, AdamUpdate or RunningUpdate
    int64_t start, count, whole; ///< elements updated: first, number; number of all elements
    bool has_rate, has_scale;    ///< whether the rate, and a factor of gradients, are operands
    double rate;
    double first, second; ///< momentum and Nesterov flag; beta1, beta2; shares of old and new
    double epsilon;
    double decay; ///< of weights: added to gradients; Adam subtracts it from the weight
};

/// Makes an update; null for an unknown rule. Operands: weight, gradient[, optimizer state][, step:
/// int64][, rate][, scale], then the results, in this order. The gradient has the updated elements
/// only, the others have all; elements that are not updated keep their values.
std::shared_ptr<const Kernel> update(const UpdateSpec &spec);

/// Makes a sum of squares in float64, in an order that does not depend on threads. Operands:
/// numbers[, total: float64], total plus their squares.
std::shared_ptr<const Kernel> squares_added(int64_t count, bool has_total);

/// Makes a clipping factor. Operands: total of squares, factor that reduces its root to `limit` at
/// most, the root. Throws KernelError if the root is not finite.
std::shared_ptr<const Kernel> clip_scale(double limit, std::string name);

/// Parameters of a Dropout.
struct DropoutSpec {
    int64_t count;
    double ratio, scale; ///< share that becomes zero, factor of the others
    int64_t stream;      ///< number of the Dropout in its graph; each drops other elements
    bool has_mask;
};

/// Makes a Dropout. Operands: numbers[, seed, step number], result[, mask of kept elements: bytes].
/// The result may be the first operand. Philox4x32-10 of seed, step, stream and position decides
/// what is dropped, as in the NumPy kernel.
std::shared_ptr<const Kernel> dropout(const DropoutSpec &spec);

/// Shape of an image as (outer, channels, inner); channels are last if `inner` is 1.
struct ChannelsSpec {
    int64_t outer, channels, inner;
};

/// Makes a BatchNormalization by the batch's statistics, summed in float64. Operands: image, scale,
/// bias, result, mean, variance. The result may be the image.
std::shared_ptr<const Kernel> batch_normalization(const ChannelsSpec &spec, double epsilon);

/// Makes its gradient. Operands: the result's gradient, image, scale, mean, variance, then
/// gradients of image, scale and bias. The first written may be the first read. `is_given` means
/// that statistics were inputs rather than the batch's.
std::shared_ptr<const Kernel> batch_normalization_gradient(const ChannelsSpec &spec, double epsilon,
                                                           bool is_given);

/// Window over two axes; pixels are `pixel` elements apart, channels `channel`.
struct PoolSpec {
    int64_t batch, channels;
    std::array<int64_t, 2> source, target, kernel, strides, dilations, begin;
    bool is_last; ///< whether channels are last
};

/// Makes the gradient of a MaxPool. Operands: the result's gradient, image, the image's gradient,
/// which goes to the first of equal elements.
std::shared_ptr<const Kernel> largest_gradient(const PoolSpec &spec);

/// Shape of scores as (outer, classes, inner).
struct LabelsSpec {
    int64_t outer, classes, inner;
    bool is_mean;
    bool ignores;
    int64_t ignored;
    bool has_weights; ///< whether classes have weights
};

/// Makes the gradient of a cross entropy. Operands: the loss's gradient, logarithms of
/// probabilities, labels[, weights of classes], the scores' gradient, which may overwrite the
/// logarithms.
std::shared_ptr<const Kernel> cross_entropy_gradient(const LabelsSpec &spec, std::string name);

/// Axis that was gathered from, between others, and the number of indices.
struct PickedSpec {
    int64_t before, along, after;
    int64_t start, length; ///< range of the axis that the result has
    int64_t count;
};

/// Makes the gradient of a Gather. Operands: gradient, indices, result (before, length, after), in
/// which gradients are added at the indices that they were gathered from.
std::shared_ptr<const Kernel> gather_gradient(const PickedSpec &spec, bool is_wide,
                                              std::string name);

} // namespace tightship::kernels
