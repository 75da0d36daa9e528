#include "tightship/kernels/reduction/rows.hpp"
#include "recorded.hpp"
#include "tightship/kernels/reduction/reduction.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using kernels::Dims;
using KernelPointer = std::shared_ptr<const Kernel>;

KernelPointer reduction(const std::string &name, const std::string &dtype,
                        const std::array<Dims, 3> &kept, const std::array<Dims, 2> &reduced) {
    const auto type = kernels::element_type(dtype);
    if (!type)
        return nullptr;
    return kernels::reduction({name, *type, kept[0], kept[1], kept[2], reduced[0], reduced[1]});
}

KernelPointer normalization(const std::string &dtype, std::array<int64_t, 4> rows, bool by_segment,
                            std::array<bool, 4> present, bool is_centered, double epsilon) {
    const auto type = kernels::element_type(dtype);
    if (!type)
        return nullptr;
    return kernels::normalization({*type, rows[0], rows[1], rows[2], by_segment, rows[3],
                                   present[0], present[1], present[2], present[3], is_centered,
                                   epsilon});
}

KernelPointer softmax(const std::string &dtype, std::array<int64_t, 3> rows, bool is_logarithm) {
    const auto type = kernels::element_type(dtype);
    return type ? kernels::softmax(*type, rows[0], rows[1], rows[2], is_logarithm) : nullptr;
}

} // namespace

void row_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel)
        .def_static("reduction", &reduction, "name"_a, "dtype"_a, "kept"_a, "reduced"_a,
                    nb::sig("def reduction(name: str, dtype: str, kept: tuple[Sequence[int], "
                            "Sequence[int], Sequence[int]], reduced: tuple[Sequence[int], "
                            "Sequence[int]]) -> NativeKernel | None"),
                    "Make a reduction. Operands: source, target. `kept`: shape of kept axes, "
                    "strides (bytes) in both; `reduced`: shape and strides of reduced axes. None "
                    "if no kernel has this name for the dtype.")
        .def_static("normalization", &normalization, "dtype"_a, "rows"_a, "by_segment"_a,
                    "present"_a, "is_centered"_a, "epsilon"_a,
                    nb::sig("def normalization(dtype: str, rows: tuple[int, int, int, int], "
                            "by_segment: bool, present: Sequence[bool], is_centered: bool, "
                            "epsilon: float) -> NativeKernel | None"),
                    "Make a normalization of rows. Operands, as far as `present`: source, scale, "
                    "bias, target, means, inverse deviations. `rows`: count, parts of each, length "
                    "of a part, parameters.")
        .def_static("softmax", &softmax, "dtype"_a, "rows"_a, "is_logarithm"_a,
                    nb::sig("def softmax(dtype: str, rows: tuple[int, int, int], "
                            "is_logarithm: bool) -> NativeKernel | None"),
                    "Make a softmax or its logarithm. Operands: source, target; `rows` is (before, "
                    "along, after) the axis.");
}

} // namespace tightship::bind
