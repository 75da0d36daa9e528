/// Kernels of training steps, between the library's: float32, on dense operands.
#pragma once

#include "tightship/kernel.hpp"

#include <array>
#include <memory>
#include <string>

namespace tightship::kernels {

/// How a weight and what is kept of it change, each over itself.
struct UpdateSpec {
    std::string rule;            ///< SgdUpdate, MomentumUpdate, AdamUpdate or RunningUpdate
    int64_t start, count, whole; ///< elements that change: first, how many, and of how many
    bool has_rate, has_scale;    ///< whether the rate, and a factor of gradients, are operands
    double rate;
    double first, second; ///< momentum, whether Nesterov's; beta1 and beta2; shares kept and added
    double epsilon;
    double decay; ///< of weights: added to gradients, but for Adam, which takes it off the weight
};

/// Weight, gradient, [kept of it], [step: int64], [rate], [scale], then what is written, in their
/// order. The gradient has the elements that change, all others all; what does not change is what
/// it was. Null for another rule.
std::shared_ptr<const Kernel> update(const UpdateSpec &spec);

/// Numbers, [a total: float64], the total with their squares: summed in float64, in an order that
/// no number of threads changes.
std::shared_ptr<const Kernel> squares_added(int64_t count, bool has_total);

/// A total of squares, then what its root is to be multiplied by to be at most `limit`, and the
/// root. Throws where that is no finite number.
std::shared_ptr<const Kernel> clip_scale(double limit, std::string name);

/// What is dropped, and by which numbers.
struct DropoutSpec {
    int64_t count;
    double ratio, scale; ///< share that becomes zero, factor of the others
    int64_t stream;      ///< which of a graph's it is: another one drops others
    bool has_mask;
};

/// Numbers, [seed, number of the step], result, [bytes that say what was kept]. The result may be
/// the first operand. What is dropped follows from seed, step, stream and place by Philox4x32-10,
/// as the kernel of NumPy spells it out.
std::shared_ptr<const Kernel> dropout(const DropoutSpec &spec);

/// An image seen as (outer, channels, inner): channels last where `inner` is 1.
struct ChannelsSpec {
    int64_t outer, channels, inner;
};

/// Image, scale, bias, result, mean, variance. The result may be the image. Statistics are of the
/// batch, summed in float64.
std::shared_ptr<const Kernel> batch_normalization(const ChannelsSpec &spec, double epsilon);

/// The result's gradient, image, scale, mean, variance, then the gradients of image, scale and
/// bias. The first written may be the first read. Statistics are the batch's, or were given.
std::shared_ptr<const Kernel> batch_normalization_gradient(const ChannelsSpec &spec, double epsilon,
                                                           bool is_given);

/// A window over two axes; pixels lie `pixel` elements apart, channels `channel`.
struct PoolSpec {
    int64_t batch, channels;
    std::array<int64_t, 2> source, target, kernel, strides, dilations, begin;
    bool is_last; ///< whether channels lie last
};

/// The result's gradient, the image, the image's gradient: the first of equal elements has it.
std::shared_ptr<const Kernel> largest_gradient(const PoolSpec &spec);

/// Scores seen as (outer, classes, inner).
struct LabelsSpec {
    int64_t outer, classes, inner;
    bool is_mean;
    bool ignores;
    int64_t ignored;
    bool has_weights; ///< whether classes weigh differently
};

/// The loss' gradient, logarithms of probabilities, labels, [weights of classes], the scores'
/// gradient, which may be written over the logarithms.
std::shared_ptr<const Kernel> cross_entropy_gradient(const LabelsSpec &spec, std::string name);

/// An axis that was picked from, between others, and how many were picked.
struct PickedSpec {
    int64_t before, along, after;
    int64_t start, length; ///< along the axis: what the result has of it
    int64_t count;
};

/// Gradient, indices, result of (before, length, after): zero, and what was picked added where it
/// was picked.
std::shared_ptr<const Kernel> gather_gradient(const PickedSpec &spec, bool is_wide,
                                              std::string name);

} // namespace tightship::kernels
