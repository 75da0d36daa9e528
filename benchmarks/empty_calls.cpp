/// Calls that do nothing, with the arguments of `allocate` and `deallocate`, to measure nanobind's
/// cost.
#include <nanobind/nanobind.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

struct Empty {};

} // namespace

NB_MODULE(empty_calls, module) {
    nb::class_<Empty>(module, "Empty")
        .def(nb::init<>())
        .def(
            "allocate", [](Empty &, size_t, size_t) { return uintptr_t{1} << 46; }, "size_bytes"_a,
            "alignment"_a = 16)
        .def(
            "deallocate", [](Empty &, uintptr_t, size_t, size_t) {}, "address"_a, "size_bytes"_a,
            "alignment"_a = 16);
}
