#include "tightship/kernels/convolution/convolution.hpp"
#include "recorded.hpp"
#include "tightship/kernels/convolution/scale.hpp"
#include "tightship/kernels/recipes.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

void convolution_kernels(nb::class_<Kernel> &kernel) {
    using Pair = std::array<int64_t, 2>;
    nb::class_<kernels::ConvolutionShape>(
        kernel, "ConvolutionShape", "Shape of a convolution over two spatial axes, channels last.")
        .def(
            "__init__",
            [](kernels::ConvolutionShape *self, const std::array<int64_t, 3> &counts, Pair source,
               Pair target, Pair kernel_size, Pair strides, Pair dilations, Pair pads,
               int64_t depth, bool by_block) {
                new (self) kernels::ConvolutionShape{counts[0], counts[1],   counts[2], source,
                                                     target,    kernel_size, strides,   dilations,
                                                     pads,      depth,       by_block};
            },
            "batch_channels_outputs"_a, "source"_a, "target"_a, "kernel"_a, "strides"_a,
            "dilations"_a, "pads"_a, "depth"_a, "by_block"_a);
    recorded(kernel).def_static(
        "streamed_convolution", &kernels::streamed_convolution, "shape"_a, "has_bias"_a,
        "has_addend"_a, "low"_a, "high"_a,
        "Make a convolution that streams weights packed by block or by chunk; needs AVX-512. "
        "Operands: source, weights[, bias][, addend], target.");
    recorded(kernel).def_static(
        "scale", &kernels::scale, "shape"_a, "strides"_a,
        "Make a product of elements and scales. Operands: source, scales, target; strides in "
        "bytes, 0 where a scale repeats. The innermost axis is dense.");
}

} // namespace tightship::bind
