#include "tightship/kernels/gradient/training.hpp"
#include "recorded.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using KernelPointer = std::shared_ptr<const Kernel>;
using Pair = std::array<int64_t, 2>;

KernelPointer update(const std::string &rule, const std::array<int64_t, 3> &elements,
                     const std::array<bool, 2> &has, const std::array<double, 5> &numbers) {
    const auto [start, count, whole] = elements;
    const auto [rate, first, second, epsilon, decay] = numbers;
    return kernels::update(
        {rule, start, count, whole, has[0], has[1], rate, first, second, epsilon, decay});
}

KernelPointer squares_added(int64_t count, bool has_total) {
    return kernels::squares_added(count, has_total);
}

KernelPointer clip_scale(double limit, const std::string &name) {
    return kernels::clip_scale(limit, name);
}

KernelPointer dropout(int64_t count, const std::array<double, 2> &numbers, int64_t stream,
                      bool has_mask) {
    return kernels::dropout({count, numbers[0], numbers[1], stream, has_mask});
}

KernelPointer batch_normalization(const std::array<int64_t, 3> &image, double epsilon) {
    return kernels::batch_normalization({image[0], image[1], image[2]}, epsilon);
}

KernelPointer batch_normalization_gradient(const std::array<int64_t, 3> &image, double epsilon,
                                           bool is_given) {
    return kernels::batch_normalization_gradient({image[0], image[1], image[2]}, epsilon, is_given);
}

KernelPointer largest_gradient(const Pair &images, const std::array<Pair, 6> &window,
                               bool is_last) {
    return kernels::largest_gradient({images[0], images[1], window[0], window[1], window[2],
                                      window[3], window[4], window[5], is_last});
}

KernelPointer cross_entropy_gradient(const std::array<int64_t, 3> &scores,
                                     const std::array<bool, 3> &has, int64_t ignored,
                                     const std::string &name) {
    return kernels::cross_entropy_gradient(
        {scores[0], scores[1], scores[2], has[0], has[1], ignored, has[2]}, name);
}

KernelPointer gather_gradient(const std::array<int64_t, 3> &shape, const Pair &part, int64_t count,
                              bool is_wide, const std::string &name) {
    return kernels::gather_gradient({shape[0], shape[1], shape[2], part[0], part[1], count},
                                    is_wide, name);
}

} // namespace

void training_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel)
        .def_static("update", &update, "rule"_a, "elements"_a, "has"_a, "numbers"_a,
                    nb::sig("def update(rule: str, elements: Sequence[int], has: Sequence[bool], "
                            "numbers: Sequence[float]) -> NativeKernel | None"),
                    "Make an optimizer's update. Operands: weight, gradient, optimizer state, "
                    "step[, rate][, scale], then the results. `elements`: first and number of "
                    "those updated, number of all. `has`: a rate, a scale. `numbers`: rate, two of "
                    "the rule's, epsilon, decay.")
        .def_static(
            "squares_added", &squares_added, "count"_a, "has_total"_a,
            "Make a sum of squares. Operands: numbers[, total], the total plus their squares.")
        .def_static("clip_scale", &clip_scale, "limit"_a, "name"_a,
                    "Make a clipping factor. Operands: total of squares, the factor that clips its "
                    "root to `limit`, the root.")
        .def_static("dropout", &dropout, "count"_a, "numbers"_a, "stream"_a, "has_mask"_a,
                    "Make a Dropout. Operands: numbers, seed and step, result[, mask]. `numbers`: "
                    "ratio, scale.")
        .def_static("batch_normalization", &batch_normalization, "image"_a, "epsilon"_a,
                    "Make a BatchNormalization in training mode. Operands: image as (outer, "
                    "channels, inner), scale, bias, result, mean, variance.")
        .def_static("batch_normalization_gradient", &batch_normalization_gradient, "image"_a,
                    "epsilon"_a, "is_given"_a,
                    "Make the gradient of a batch normalization. Operands: the result's gradient, "
                    "image, scale, mean, variance, gradients of image, scale and bias.")
        .def_static("largest_gradient", &largest_gradient, "images"_a, "window"_a, "is_last"_a,
                    "Make the gradient of a MaxPool. Operands: the result's gradient, image, its "
                    "gradient. `images`: count, channels. `window`: source, target, kernel, "
                    "strides, dilations, padding before.")
        .def_static("cross_entropy_gradient", &cross_entropy_gradient, "scores"_a, "has"_a,
                    "ignored"_a, "name"_a,
                    "Make the gradient of a cross entropy. Operands: the loss's gradient, "
                    "logarithms of probabilities, labels[, weights of classes], the scores' "
                    "gradient. `has`: a mean, an ignored label, weights.")
        .def_static("gather_gradient", &gather_gradient, "shape"_a, "part"_a, "count"_a,
                    "is_wide"_a, "name"_a,
                    "Make the gradient of a Gather. Operands: gradient, indices of 32 or 64 bits, "
                    "result of `shape` (before, along, after). `part`: first index and length of "
                    "the part of that axis that the result has.");
}

} // namespace tightship::bind
