#include "bind.hpp"

namespace nb = nanobind;

namespace tightship::bind {

void kernels(nb::module_ &module) {
    nb::exception<KernelError>(module, "KernelError", PyExc_RuntimeError);
    nb::class_<Kernel> kernel(module, "NativeKernel",
                              "An operator of our own for fixed shapes, one constructor each; "
                              "operands: inputs, outputs, scratch.");
    movement_kernels(kernel);
}

} // namespace tightship::bind
