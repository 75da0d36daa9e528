#include "tightship/kernels/movement/movement.hpp"
#include "recorded.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using kernels::Dims;
using Part = std::tuple<size_t, int64_t, Dims>;

kernels::Part part(const Part &given) {
    return {std::get<0>(given), std::get<1>(given), std::get<2>(given)};
}

std::shared_ptr<const Kernel> moves(int64_t item_bytes,
                                    const std::vector<std::tuple<Dims, Part, Part>> &given) {
    std::vector<kernels::Move> moves;
    for (const auto &[shape, source, target] : given)
        moves.push_back({shape, part(source), part(target)});
    return kernels::moves(item_bytes, moves);
}

} // namespace

void movement_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel)
        .def_static("copy", &kernels::copy, "item_bytes"_a, "shape"_a, "source_strides"_a,
                    "target_strides"_a,
                    "Make a copy to another layout of the same shape. Operands: source, target; "
                    "strides in bytes.")
        .def_static("moves", &moves, "item_bytes"_a, "moves"_a,
                    "Make several copies in one kernel. Each move: shape, source and target, as "
                    "(operand number, byte of the first element, strides in bytes).");
}

} // namespace tightship::bind
