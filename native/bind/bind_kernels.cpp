#include "bind.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

void kernels(nb::module_ &module) {
    nb::exception<KernelError>(module, "KernelError", PyExc_RuntimeError);
    nb::class_<Kernel> kernel(module, "NativeKernel",
                              "An operator of our own for fixed shapes, one constructor each; "
                              "operands: inputs, outputs, scratch.");
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
    rotary_kernels(kernel);
    recurrent_kernels(kernel);
    quantize_kernels(kernel);
}

} // namespace tightship::bind
