#include "tightship/kernels/reduction/ranks.hpp"
#include "recorded.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using KernelPointer = std::shared_ptr<const Kernel>;
using Lengths = std::array<int64_t, 3>;

kernels::Line line_of(const Lengths &rows) {
    return {rows[0], rows[1], rows[2]};
}

KernelPointer position(const std::string &dtype, const Lengths &rows, bool is_largest,
                       bool takes_last) {
    const auto type = kernels::element_type(dtype);
    return type ? kernels::position(*type, line_of(rows), is_largest, takes_last) : nullptr;
}

KernelPointer hardmax(const std::string &dtype, const Lengths &rows) {
    const auto type = kernels::element_type(dtype);
    return type ? kernels::hardmax(*type, line_of(rows)) : nullptr;
}

KernelPointer best(const std::string &dtype, const Lengths &rows, int64_t count, bool is_largest) {
    const auto type = kernels::element_type(dtype);
    return type ? kernels::best(*type, line_of(rows), count, is_largest) : nullptr;
}

KernelPointer running_sum(const std::string &dtype, const Lengths &rows, bool is_exclusive,
                          bool is_reverse) {
    const auto type = kernels::element_type(dtype);
    return type ? kernels::running_sum(*type, line_of(rows), is_exclusive, is_reverse) : nullptr;
}

} // namespace

void rank_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel)
        .def_static("position", &position, "dtype"_a, "rows"_a, "is_largest"_a, "takes_last"_a,
                    nb::sig("def position(dtype: str, rows: tuple[int, int, int], is_largest: "
                            "bool, takes_last: bool) -> NativeKernel | None"),
                    "Make an ArgMax or ArgMin. Operands: source, target (int64); `rows` is "
                    "(before, along, after) the axis.")
        .def_static(
            "hardmax", &hardmax, "dtype"_a, "rows"_a,
            nb::sig("def hardmax(dtype: str, rows: tuple[int, int, int]) "
                    "-> NativeKernel | None"),
            "Make a Hardmax. Operands: source, target; `rows` is (before, along, after) the axis.")
        .def_static(
            "best", &best, "dtype"_a, "rows"_a, "count"_a, "is_largest"_a,
            nb::sig("def best(dtype: str, rows: tuple[int, int, int], count: int, "
                    "is_largest: bool) -> NativeKernel | None"),
            "Make a TopK of `count` sorted elements. Operands: source, values, indices, scratch.")
        .def_static(
            "running_sum", &running_sum, "dtype"_a, "rows"_a, "is_exclusive"_a, "is_reverse"_a,
            nb::sig("def running_sum(dtype: str, rows: tuple[int, int, int], "
                    "is_exclusive: bool, is_reverse: bool) -> NativeKernel | None"),
            "Make a CumSum. Operands: source, target; `rows` is (before, along, after) the axis.");
}

} // namespace tightship::bind
