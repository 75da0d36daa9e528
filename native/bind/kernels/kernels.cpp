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
                              "Native kernel of an operator for fixed shapes, with a factory for "
                              "each; operands: inputs, outputs, scratch.");
    nb::exception<recipe::Error>(module, "RecipeError", PyExc_ValueError);
    module.def(
        "record_recipes", [](bool wanted) { return std::exchange(recipe::is_recording, wanted); },
        "wanted"_a,
        "Set whether the thread records recipes of objects that it makes; return the previous "
        "setting.");
    module.def(
        "kernel_cpu", &kernel_cpu,
        "Return the instruction sets of this processor that native kernels use, such as `avx512`.");
    kernel.def_static(
        "of_recipe",
        [](nb::bytes bytes) {
            return made_again<std::shared_ptr<const Kernel>>({bytes.c_str(), bytes.size()});
        },
        "recipe"_a, "Make an object from a recipe; raises RecipeError, or as its factory does.");
    kernel.def(
        "reach",
        [](const Kernel &self) {
            std::vector<std::pair<int64_t, int64_t>> all;
            for (const Reach each : self.reach())
                all.emplace_back(each.low, each.high);
            return all;
        },
        "Return the byte range [low, high) of each operand, relative to its address, that a run "
        "may touch; scratch excluded.");
    kernel.def_prop_ro(
        "written", &Kernel::written,
        "Number of operands, counted from the last, that a run writes; it only reads the others.");
    kernel.def_prop_ro(
        "recipe",
        [](const Kernel &self) { return nb::bytes(self.recipe.data(), self.recipe.size()); },
        "Bytes to make it again from, if recorded; else empty.");
    kernel.def("scratch_bytes", &Kernel::scratch_bytes, "threads"_a,
               "Return the bytes of its scratch, the last operand.");
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
    plane_kernels(kernel);
    quantized_row_kernels(kernel);
    winograd_kernels(kernel);
    block_product_kernels(module, kernel);
    split_product_kernels(module, kernel);
    rotary_kernels(kernel);
    recurrent_kernels(kernel);
    quantize_kernels(kernel);
    training_kernels(kernel);
}

} // namespace tightship::bind
