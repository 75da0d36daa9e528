#include "bind.hpp"
#include "tightship/kernels/rotary.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

void rotary_kernels(nb::class_<Kernel> &kernel) {
    kernel.def_static("rotary", &kernels::rotary, "shape"_a, "strides"_a, "partners"_a,
                      "Source, cosine, sine, target, of float32: pairs turned by an angle; "
                      "`shape` counts pairs, strides lead from pair to pair, partners within one, "
                      "in bytes.");
}

} // namespace tightship::bind
