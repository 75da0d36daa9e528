#include "recorded.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

void kernels(nb::module_ &module) {
    nb::exception<KernelError>(module, "KernelError", PyExc_RuntimeError);
    nb::class_<Kernel> kernel(module, "NativeKernel",
                              "An operator of our own for fixed shapes, one constructor each; "
                              "operands: inputs, outputs, scratch.");
    nb::exception<recipe::Error>(module, "RecipeError", PyExc_ValueError);
    module.def(
        "record_recipes", [](bool wanted) { return std::exchange(recipe::is_recording, wanted); },
        "wanted"_a,
        "Whether the thread keeps the recipes of what it makes from now on; returns what was.");
    module.def("kernel_cpu", &kernel_cpu,
               "Which instructions of this processor native kernels are made for, as `avx512`.");
    kernel.def_static(
        "of_recipe",
        [](nb::bytes bytes) {
            return made_again<std::shared_ptr<const Kernel>>({bytes.c_str(), bytes.size()});
        },
        "recipe"_a, "What a recipe says; raises RecipeError, or as its factory does.");
    kernel.def(
        "reach",
        [](const Kernel &self) {
            std::vector<std::pair<int64_t, int64_t>> all;
            for (const Reach each : self.reach())
                all.emplace_back(each.low, each.high);
            return all;
        },
        "Bytes of each operand that a run may touch, its scratch left out: from the first to "
        "behind "
        "the last, counted from the operand's address.");
    kernel.def_prop_ro("written", &Kernel::written,
                       "How many of its last operands a run writes; the others it only reads.");
    kernel.def_prop_ro(
        "recipe",
        [](const Kernel &self) { return nb::bytes(self.recipe.data(), self.recipe.size()); },
        "How to make it again where that was recorded, else empty.");
    kernel.def("scratch_bytes", &Kernel::scratch_bytes, "threads"_a,
               "Room that it needs for itself, its last operand.");
    arithmetic_kernels(kernel);
    row_kernels(kernel);
    rank_kernels(kernel);
    movement_kernels(kernel);
    indexed_kernels(kernel);
    generate_kernels(kernel);
    sequence_kernels(kernel);
    attention_kernels(kernel);
    convolution_kernels(kernel);
    depthwise_kernels(kernel);
    split_product_kernels(module, kernel);
    rotary_kernels(kernel);
    recurrent_kernels(kernel);
    quantize_kernels(kernel);
    training_kernels(kernel);
}

} // namespace tightship::bind
