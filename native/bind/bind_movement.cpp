#include "bind.hpp"
#include "tightship/kernels/movement.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

void movement_kernels(nb::class_<Kernel> &kernel) {
    kernel.def_static("copy", &kernels::copy, "item_bytes"_a, "shape"_a, "source_strides"_a,
                      "target_strides"_a,
                      "Source, target: elements into another layout of the same shape; strides in "
                      "bytes.");
}

} // namespace tightship::bind
