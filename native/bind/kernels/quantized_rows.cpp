#include "tightship/kernels/product/quantized_rows.hpp"
#include "recorded.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

void quantized_row_kernels(nb::class_<Kernel> &kernel) {
    using Limits = std::pair<float, float>;
    const auto make = [](const std::array<int64_t, 3> &lengths, const Limits &result, bool adds,
                         const Limits &product, const std::array<float, 3> &numbers,
                         bool is_addend_signed) {
        return kernels::quantized_rows({lengths[0],
                                        lengths[1],
                                        lengths[2],
                                        {result.first, result.second},
                                        adds,
                                        {product.first, product.second},
                                        numbers[0],
                                        numbers[1],
                                        numbers[2],
                                        is_addend_signed});
    };
    recorded(kernel).def_static(
        "quantized_rows", make, "lengths"_a, "result"_a, "adds"_a, "product"_a, "numbers"_a,
        "is_addend_signed"_a,
        "Make a product of rows of uint8 by int8 weights, rounded to 8 bits. Operands: source, "
        "weights, factors, terms, addend if it `adds`, target. `lengths`: rows, depth, columns. "
        "`result` and `product` clamp the result, and before an addition the product; `numbers`: "
        "factors of product and addend, and a shift. Raises ValueError unless columns are a "
        "multiple of 64 and the depth is one of 4.");
}

} // namespace tightship::bind
