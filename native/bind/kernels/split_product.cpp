#include "tightship/kernels/product/split_product.hpp"
#include "recorded.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

kernels::SplitActivation activation_of(const std::string &name) {
    using enum kernels::SplitActivation;
    const std::pair<const char *, kernels::SplitActivation> names[] = {
        {"clip", kClip}, {"gelu_erf", kGelu}, {"gelu_tanh", kGeluTanh}, {"swish", kSwish}};
    for (const auto &[each, activation] : names)
        if (name == each)
            return activation;
    throw std::invalid_argument("no activation of a split product: " + name);
}

std::shared_ptr<const Kernel> split_product(const std::array<int64_t, 3> &counts, bool has_bias,
                                            bool has_addend, const std::string &activation,
                                            float low, float high) {
    if (!kernels::multiplies_tiles())
        throw std::invalid_argument("A split product needs AMX, which this process cannot use.");
    return kernels::split_product({counts[0], counts[1], counts[2]},
                                  {has_bias, has_addend, activation_of(activation), low, high});
}

} // namespace

void split_product_kernels(nb::module_ &module, nb::class_<Kernel> &kernel) {
    module.def(
        "multiplies_tiles", &kernels::multiplies_tiles,
        "Whether this processor multiplies tiles of bfloat16 (AMX) and the system permits it.");
    recorded(kernel).def_static(
        "split_product", &split_product, "rows_depth_columns"_a, "has_bias"_a, "has_addend"_a,
        "activation"_a, "low"_a, "high"_a,
        "Make a product of float32 matrices from products of bfloat16, three of which make a "
        "float32. Operands: source, weights in panels of 64 columns[, bias][, addend], target, "
        "scratch. `activation`: clip (to `low` and `high`), gelu_erf, gelu_tanh or swish.");
}

} // namespace tightship::bind
