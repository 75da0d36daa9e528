#include "tightship/kernels/movement/generate.hpp"
#include "recorded.hpp"
#include "tightship/kernels/movement/largest_places.hpp"
#include "tightship/kernels/movement/narrow_rows.hpp"
#include "tightship/kernels/movement/sample.hpp"
#include "tightship/kernels/movement/sequence.hpp"
#include "tightship/kernels/movement/taps.hpp"
#include "tightship/kernels/reach.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using kernels::Dims;

std::shared_ptr<const Kernel>
fills(const std::vector<std::tuple<nb::bytes, int64_t, Dims, Dims>> &given) {
    std::vector<kernels::Fill> fills;
    for (const auto &[element, offset_bytes, shape, strides] : given)
        fills.push_back(
            {std::string(element.c_str(), element.size()), offset_bytes, shape, strides});
    return kernels::fills(fills);
}

std::shared_ptr<const Kernel>
reverse_sequences(const std::string &node, const std::array<int64_t, 3> &sizes, bool steps_first) {
    return kernels::reverse_sequences({node, sizes[0], sizes[1], sizes[2], steps_first});
}

std::shared_ptr<const Kernel> append(const std::string &node, const std::array<int64_t, 5> &sizes,
                                     const Dims &update_strides, bool has_firsts, bool is_circular,
                                     const std::string &type, int64_t width) {
    return kernels::append({node, sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], has_firsts,
                            is_circular, update_strides, kernels::row_type(type), width});
}

std::shared_ptr<const Kernel>
taps(const std::vector<std::tuple<std::array<int64_t, 3>, std::vector<Dims>,
                                  std::vector<std::vector<float>>>> &given) {
    std::vector<kernels::Taps> axes;
    for (const auto &[sizes, indices, weights] : given) {
        kernels::require(!indices.empty() && !indices.front().empty(),
                         "a kernel does not say what each position is made of");
        const auto positions = static_cast<int64_t>(indices.front().size());
        kernels::Taps &axis = axes.emplace_back(
            kernels::Taps{sizes[0], sizes[1], sizes[2], positions, Dims(), std::vector<float>()});
        for (const Dims &tap : indices)
            axis.indices.insert(axis.indices.end(), tap.begin(), tap.end());
        for (const std::vector<float> &tap : weights)
            axis.weights.insert(axis.weights.end(), tap.begin(), tap.end());
    }
    return kernels::taps(axes);
}

std::shared_ptr<const Kernel> largest_places(const std::string &dtype, int64_t images,
                                             const std::array<Dims, 3> &axes,
                                             const std::array<Dims, 4> &window) {
    const auto type = kernels::element_type(dtype);
    if (!type)
        return nullptr;
    return kernels::largest_places(
        *type, {images, axes[0], axes[1], window[0], window[1], window[2], window[3], axes[2]});
}

kernels::Interpolation interpolation(const std::string &name) {
    return name == "nearest"  ? kernels::Interpolation::kNearest
           : name == "linear" ? kernels::Interpolation::kLinear
                              : kernels::Interpolation::kCubic;
}

kernels::Beyond beyond(const std::string &name) {
    return name == "zeros"    ? kernels::Beyond::kZeros
           : name == "border" ? kernels::Beyond::kBorder
                              : kernels::Beyond::kReflection;
}

std::shared_ptr<const Kernel> sample(const std::array<std::string, 2> &how, bool aligns_corners,
                                     const std::array<int64_t, 3> &sizes, const Dims &lengths,
                                     const Dims &source_steps,
                                     const std::array<int64_t, 3> &target_steps) {
    return kernels::sample({interpolation(how[0]), beyond(how[1]), aligns_corners, sizes[0],
                            sizes[1], sizes[2], lengths, source_steps, target_steps[0],
                            target_steps[1], target_steps[2]});
}

} // namespace

void generate_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel)
        .def_static("lookup", &kernels::lookup, "item_bytes"_a, "items"_a, "has_fill"_a, "tables"_a,
                    "Make a lookup. Operands: source[, fill], target. The source byte of an "
                    "element is the sum of one entry per axis of `tables`; a negative entry fills. "
                    "An entry stands for `items` elements.")
        .def_static("taps", &taps, "axes"_a,
                    "Make weighted sums of source elements, one axis after another. Operands: "
                    "source, target (float32), scratch. `axes`: elements before, along and after "
                    "the axis, then indices and weights by tap and position; without weights the "
                    "largest element is taken.")
        .def_static(
            "largest_places", &largest_places, "dtype"_a, "images"_a, "axes"_a, "window"_a,
            nb::sig("def largest_places(dtype: str, images: int, axes: tuple[Sequence[int], "
                    "Sequence[int], Sequence[int]], window: tuple[Sequence[int], "
                    "Sequence[int], Sequence[int], Sequence[int]]) -> NativeKernel | None"),
            "Make a MaxPool that finds places. Operands: source, target, places (int64). "
            "`axes`: lengths of the image, of the result, and what a coordinate adds to a "
            "place; `window`: its size, strides, dilations and padding before.")
        .def_static(
            "sample", &sample, "how"_a, "aligns_corners"_a, "sizes"_a, "lengths"_a,
            "source_steps"_a, "target_steps"_a,
            "Make a GridSample. Operands: source, grid, target, of float32. `how`: nearest, linear "
            "or cubic; zeros, border or reflection. `sizes`: images, channels, positions. Steps in "
            "elements: of images, channels, then spatial axes (source) or positions (target).")
        .def_static("fills", &fills, "fills"_a,
                    "Make fills of one target. Each fill: an element as bytes, a byte offset, "
                    "shape, strides (bytes).")
        .def_static("triangle", &kernels::triangle, "item_bytes"_a, "upper"_a, "has_diagonal"_a,
                    "shape"_a, "source_strides"_a,
                    "Make a Trilu. Operands: source[, diagonal], target; zeros outside the "
                    "triangle of each matrix.")
        .def_static("one_hot", &kernels::one_hot, "item_bytes"_a, "dtype"_a, "shape"_a,
                    nb::sig("def one_hot(item_bytes: int, dtype: str, shape: tuple[int, int, "
                            "int]) -> NativeKernel | None"),
                    "Make a OneHot. Operands: indices of `dtype`, off and on values, target; "
                    "`shape` is (outer, depth, inner).")
        .def_static("ramp", &kernels::ramp, "dtype"_a, "count"_a,
                    nb::sig("def ramp(dtype: str, count: int) -> NativeKernel | None"),
                    "Make a Range. Operands: start, step, target of `count` numbers.");
}

void sequence_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel)
        .def_static("reverse_sequences", &reverse_sequences, "node"_a, "sizes"_a, "steps_first"_a,
                    "Make a ReverseSequence. Operands: data, lengths, target. `sizes`: sequences, "
                    "steps, bytes of a step.")
        .def_static("append", &append, "node"_a, "sizes"_a, "update_strides"_a, "has_firsts"_a,
                    "is_circular"_a, "type"_a = "float32", "width"_a = 0,
                    "Make an append to a cache. Operands: past, update[, first steps], target. "
                    "`sizes`: batches, groups, steps, new steps, bytes of a new step; the strides, "
                    "in bytes, are between batches, groups and steps. With a `width`, rows of so "
                    "many float32 are rounded to `type`.");
}

} // namespace tightship::bind
