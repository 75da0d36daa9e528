#include "tightship/kernels/elementwise/quantize.hpp"
#include "recorded.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

void quantize_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel)
        .def_static("quantize", &kernels::quantize, "dtype"_a, "shape"_a, "strides"_a, "has_zero"_a,
                    "Make a QuantizeLinear. Operands: x, scale[, zero point], y of `dtype`; "
                    "strides in bytes of the four.")
        .def_static("dequantize", &kernels::dequantize, "dtype"_a, "shape"_a, "strides"_a,
                    "has_zero"_a,
                    "Make a DequantizeLinear. Operands: x of `dtype`, scale[, zero point], y; "
                    "strides in bytes of the four.")
        .def_static("dynamic_quantize", &kernels::dynamic_quantize, "count"_a,
                    "Make a DynamicQuantizeLinear by the range of x. Operands: x, y (uint8), "
                    "scale, zero point, scratch.");
}

} // namespace tightship::bind
