#include "tightship/kernels/movement/indexed.hpp"
#include "recorded.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using kernels::Dims;
using Coordinates = std::vector<std::tuple<int64_t, int64_t, int64_t>>;
using Indexing = std::tuple<std::string, int64_t, Dims, Dims, Coordinates>;
using Walk = std::tuple<Dims, Dims, Dims, Dims>;

kernels::Indexing indexing(const Indexing &given) {
    const auto &[node, index_bytes, shape, strides, each] = given;
    kernels::Indexing made{node, index_bytes, shape, strides, {}};
    for (const auto &[length, index_step, data_step] : each)
        made.coordinates.push_back({length, index_step, data_step});
    return made;
}

kernels::Walk walk(const Walk &given) {
    return {std::get<0>(given), std::get<1>(given), std::get<2>(given), std::get<3>(given)};
}

std::shared_ptr<const Kernel> gather(int64_t item_bytes, const Indexing &tuples, const Walk &given,
                                     std::pair<int64_t, int64_t> blocks) {
    kernels::Indexing made = indexing(tuples);
    for (kernels::Coordinate &each : made.coordinates)
        std::tie(each.block, each.block_step) = blocks;
    return kernels::gather(item_bytes, made, walk(given));
}

std::shared_ptr<const Kernel> scatter(const std::tuple<int64_t, std::string, std::string> &type,
                                      const Indexing &tuples, const Walk &given,
                                      const std::tuple<Dims, Dims, Dims> &whole) {
    const auto &[shape, source, target] = whole;
    return kernels::scatter(std::get<0>(type), std::get<1>(type), std::get<2>(type),
                            indexing(tuples), walk(given), {shape, source, target});
}

} // namespace

void indexed_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel)
        .def_static(
            "gather", &gather, "item_bytes"_a, "indexing"_a, "walk"_a,
            "blocks"_a = std::pair<int64_t, int64_t>(0, 0),
            "Make a gather. Operands: data, indices, result. `indexing`: node, bytes of an index, "
            "shape and strides of the tuples, and for each of their indices (length, index step, "
            "data step). `walk`: shape; strides of data, tuples, result. `blocks`: elements in a "
            "block of the data (0 for none) and bytes from block to block.")
        .def_static("scatter", &scatter, "type"_a, "indexing"_a, "walk"_a, "whole"_a,
                    nb::sig("def scatter(type: tuple[int, str, str], indexing: tuple[str, int, "
                            "Sequence[int], Sequence[int], Sequence[tuple[int, int, int]]], walk: "
                            "tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], "
                            "whole: tuple[Sequence[int], Sequence[int], Sequence[int]]) -> "
                            "NativeKernel | None"),
                    "Make a scatter. Operands: data, indices, updates, result. `type`: item bytes, "
                    "dtype, reduction. `walk`: shape; strides of result, tuples, updates. `whole`: "
                    "the data's shape and strides, and the result's strides. None if the dtype has "
                    "no such reduction.");
}

} // namespace tightship::bind
