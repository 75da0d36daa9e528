#include "bind.hpp"

#ifdef TIGHTSHIP_ONEDNN

#include "gil.hpp"
#include "onednn_names.hpp"
#include "recorded.hpp"
#include "tightship/onednn/primitive.hpp"
#include "tightship/onednn/recipes.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace tightship::onednn;

namespace tightship::bind {

namespace {

using Operands = std::vector<const MemoryDesc *>;

Window window(const std::tuple<Dims, Dims, Dims, Dims> &parts) {
    return {std::get<0>(parts), std::get<1>(parts), std::get<2>(parts), std::get<3>(parts)};
}

void library(nb::module_ &module) {
    nb::exception<LibraryError>(module, "OneDnnLibraryError", PyExc_ImportError);
    nb::exception<Error>(module, "OneDnnError", PyExc_RuntimeError);
    module.def(
        "onednn_open", [](const std::string &path) { Library::open(path); }, "path"_a,
        "Open the library once for the process; raises OneDnnLibraryError with the reason.");
    module.def("onednn_is_open", &Library::is_open);
    module.def("onednn_version", [] { return Library::get().version_id; });
    module.def(
        "onednn_openmp", [] { return Library::get().openmp; },
        "Return the owner of its threads: `tightship`, or the file of another OpenMP runtime.");
    module.def("onednn_path", [] { return Library::get().path; });
    module.def("onednn_cpu_isa",
               [] { return static_cast<int>(Library::get().get_effective_cpu_isa()); });
    module.def(
        "set_onednn_threads", [](int count) { Library::get().set_threads(count); }, "count"_a,
        "Set the threads of primitives that the calling thread describes from now on.");
    module.def("onednn_threads", [] { return Library::get().threads(); });
    nb::class_<Reorderer>(
        module, "Reorderer",
        "Copies operands into other layouts; its generated code is released with it.")
        .def(nb::init<>(), nb::call_guard<GilReleased>())
        .def(
            "run",
            [](Reorderer &self, const MemoryDesc &src, uintptr_t from, const MemoryDesc &dst,
               uintptr_t to) {
                const GilReleased release;
                self.run(src, reinterpret_cast<const void *>(from), dst,
                         reinterpret_cast<void *>(to));
            },
            "src"_a, "from_address"_a, "dst"_a, "to_address"_a,
            "Copy an operand; both addresses must hold the bytes that their layouts describe.");
}

void memory_desc(nb::module_ &module) {
    nb::class_<MemoryDesc>(module, "MemoryDesc", "Shape, element type and layout of an operand.")
        .def(
            "__init__",
            [](MemoryDesc *self, const Dims &dims, const std::string &dtype,
               const std::optional<Dims> &strides) {
                new (self) MemoryDesc(dims, dtype_of(dtype), strides.value_or(dense_strides(dims)));
            },
            "dims"_a, "dtype"_a = "float32", "strides"_a = nb::none())
        .def_static(
            "any",
            [](const Dims &dims, const std::string &dtype) {
                return MemoryDesc::any(dims, dtype_of(dtype));
            },
            "dims"_a, "dtype"_a = "float32", "Leave the layout to the primitive.")
        .def_static(
            "named",
            [](const Dims &dims, const std::string &dtype, const std::string &format) {
                return MemoryDesc::named(dims, dtype_of(dtype), format);
            },
            "dims"_a, "dtype"_a, "format"_a, "Make a layout from its name, as `format` returns it.")
        .def_prop_ro("dims", &MemoryDesc::dims)
        .def_prop_ro("strides", &MemoryDesc::strides)
        .def_prop_ro("dtype", [](const MemoryDesc &self) { return name_of(self.dtype()); })
        .def_prop_ro("size_bytes", &MemoryDesc::size_bytes)
        .def_prop_ro(
            "end_bytes", &MemoryDesc::end_bytes,
            "Bytes from the operand's address to the end of its last element, padding included.")
        .def_prop_ro("is_plain", &MemoryDesc::is_plain)
        .def_prop_ro("offset_bytes", &MemoryDesc::offset_bytes)
        .def_prop_ro("blocks", &MemoryDesc::blocks)
        .def_prop_ro("format", &MemoryDesc::format)
        .def("reshaped", &MemoryDesc::reshaped, "dims"_a)
        .def("permuted", &MemoryDesc::permuted, "permutation"_a)
        .def("part", &MemoryDesc::part, "dims"_a, "offsets"_a)
        .def_prop_ro(
            "recipe",
            [](const MemoryDesc &self) {
                const std::string text = recipe::written<MemoryDesc>(self);
                return nb::bytes(text.data(), text.size());
            },
            "Bytes to make it again from; empty if the layout cannot be encoded.")
        .def_static(
            "of_recipe",
            [](nb::bytes bytes) {
                recipe::Reader reader({bytes.c_str(), bytes.size()});
                MemoryDesc desc = recipe::decode<MemoryDesc>(reader);
                reader.expect_end();
                return desc;
            },
            "recipe"_a, "Make a layout from a recipe; raises RecipeError or OneDnnError.")
        .def(
            "__eq__", [](const MemoryDesc &self, const MemoryDesc &other) { return self == other; },
            nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__", &MemoryDesc::hash)
        .def("__repr__", [](const MemoryDesc &self) {
            return "MemoryDesc(" + name_of(self.dtype()) + ", " + self.format() + ")";
        });
}

void attributes(nb::module_ &module) {
    nb::class_<Attributes>(module, "Attributes",
                           "Post-operations, scales and zero points of a primitive.")
        .def(nb::init<>())
        .def("add_sum", &Attributes::add_sum, "scale"_a = 1.0F)
        .def(
            "add_eltwise",
            [](Attributes &self, const std::string &algorithm, float alpha, float beta) {
                self.add_eltwise(eltwise_of(algorithm), alpha, beta);
            },
            "algorithm"_a, "alpha"_a = 0.0F, "beta"_a = 0.0F)
        .def(
            "add_binary",
            [](Attributes &self, const std::string &algorithm, const MemoryDesc &operand) {
                self.add_binary(binary_of(algorithm), operand);
            },
            "algorithm"_a, "operand"_a)
        .def("scale", &Attributes::scale, "argument"_a, "mask"_a)
        .def("zero_point", &Attributes::zero_point, "argument"_a, "mask"_a);
}

void window_primitives(nb::class_<PrimitiveDesc> &primitive) {
    recorded(primitive)
        .def_static(
            "convolution",
            [](const Operands &operands, const std::tuple<Dims, Dims, Dims, Dims> &parts,
               bool transposed, const Attributes &attributes) {
                return convolution(operands, window(parts), transposed, attributes);
            },
            "src_weights_bias_dst"_a, "window"_a, "transposed"_a, "attributes"_a,
            nb::sig("def convolution(src_weights_bias_dst: Sequence[MemoryDesc | None], window: "
                    "tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]], "
                    "transposed: bool, attributes: Attributes) -> PrimitiveDesc"))
        .def_static(
            "pooling",
            [](const std::string &algorithm, const MemoryDesc &src, const MemoryDesc &dst,
               const Dims &kernel, const std::tuple<Dims, Dims, Dims, Dims> &parts,
               const Attributes &attributes) {
                return pooling(pooling_of(algorithm), src, dst, kernel, window(parts), attributes);
            },
            "algorithm"_a, "src"_a, "dst"_a, "kernel"_a, "window"_a, "attributes"_a);
}

void elementwise_primitives(nb::class_<PrimitiveDesc> &primitive) {
    recorded(primitive)
        .def_static(
            "eltwise",
            [](const std::string &algorithm, const MemoryDesc &src, const MemoryDesc &dst,
               const std::pair<float, float> &alpha_beta, const Attributes &attributes) {
                return eltwise(eltwise_of(algorithm), src, dst, alpha_beta.first, alpha_beta.second,
                               attributes);
            },
            "algorithm"_a, "src"_a, "dst"_a, "alpha_beta"_a, "attributes"_a)
        .def_static(
            "binary",
            [](const std::string &algorithm, const MemoryDesc &left, const MemoryDesc &right,
               const MemoryDesc &dst, const Attributes &attributes) {
                return binary(binary_of(algorithm), left, right, dst, attributes);
            },
            "algorithm"_a, "left"_a, "right"_a, "dst"_a, "attributes"_a)
        .def_static(
            "sum",
            [](const Operands &sources, const MemoryDesc &dst, const std::vector<float> &scales,
               const Attributes &attributes) { return sum(sources, dst, scales, attributes); },
            "sources"_a, "dst"_a, "scales"_a, "attributes"_a)
        .def_static(
            "concat",
            [](const Operands &sources, const MemoryDesc &dst, int axis,
               const Attributes &attributes) { return concat(sources, dst, axis, attributes); },
            "sources"_a, "dst"_a, "axis"_a, "attributes"_a);
}

void normalizing_primitives(nb::class_<PrimitiveDesc> &primitive) {
    recorded(primitive)
        .def_static(
            "softmax",
            [](const MemoryDesc &src, const MemoryDesc &dst, int axis, bool logarithm,
               const Attributes &attributes) {
                return softmax(logarithm ? dnnl_softmax_log : dnnl_softmax_accurate, src, dst, axis,
                               attributes);
            },
            "src"_a, "dst"_a, "axis"_a, "logarithm"_a, "attributes"_a)
        .def_static(
            "local_response",
            [](const MemoryDesc &src, const MemoryDesc &dst, int64_t size,
               const std::tuple<float, float, float> &alpha_beta_k, const Attributes &attributes) {
                const auto [alpha, beta, k] = alpha_beta_k;
                return local_response(src, dst, size, std::array<float, 3>{alpha, beta, k},
                                      attributes);
            },
            "src"_a, "dst"_a, "size"_a, "alpha_beta_k"_a, "attributes"_a)
        .def_static("batch_normalization", &batch_normalization, "src"_a, "dst"_a, "epsilon"_a,
                    "fuse_relu"_a, "attributes"_a)
        .def_static("layer_normalization", &layer_normalization, "src"_a, "dst"_a, "epsilon"_a,
                    "with_shift"_a, "attributes"_a);
}

void convolution_gradients(nb::class_<PrimitiveDesc> &primitive) {
    recorded(primitive)
        .def_static(
            "convolution_data_gradient",
            [](const Operands &operands, const std::tuple<Dims, Dims, Dims, Dims> &parts,
               const Attributes &attributes) {
                return convolution_data_gradient(operands, window(parts), attributes);
            },
            "src_weights_bias_dst"_a, "window"_a, "attributes"_a,
            nb::sig("def convolution_data_gradient(src_weights_bias_dst: Sequence[MemoryDesc | "
                    "None], window: tuple[Sequence[int], Sequence[int], Sequence[int], "
                    "Sequence[int]], attributes: Attributes) -> PrimitiveDesc"))
        .def_static(
            "convolution_weights_gradient",
            [](const Operands &operands, const std::tuple<Dims, Dims, Dims, Dims> &parts,
               const Attributes &attributes) {
                return convolution_weights_gradient(operands, window(parts), attributes);
            },
            "src_weights_bias_dst"_a, "window"_a, "attributes"_a,
            nb::sig("def convolution_weights_gradient(src_weights_bias_dst: Sequence[MemoryDesc | "
                    "None], window: tuple[Sequence[int], Sequence[int], Sequence[int], "
                    "Sequence[int]], attributes: Attributes) -> PrimitiveDesc"));
}

void other_gradients(nb::class_<PrimitiveDesc> &primitive) {
    recorded(primitive)
        .def_static(
            "eltwise_gradient",
            [](const std::string &algorithm, const MemoryDesc &data, const MemoryDesc &diff,
               const std::pair<float, float> &alpha_beta, const Attributes &attributes) {
                return eltwise_gradient(eltwise_gradient_of(algorithm), data, diff,
                                        alpha_beta.first, alpha_beta.second, attributes);
            },
            "algorithm"_a, "data"_a, "diff"_a, "alpha_beta"_a, "attributes"_a)
        .def_static(
            "softmax_gradient",
            [](const MemoryDesc &dst, const MemoryDesc &diff, int axis, bool logarithm,
               const Attributes &attributes) {
                return softmax_gradient(logarithm ? dnnl_softmax_log : dnnl_softmax_accurate, dst,
                                        diff, axis, attributes);
            },
            "dst"_a, "diff"_a, "axis"_a, "logarithm"_a, "attributes"_a)
        .def_static("layer_normalization_gradient", &layer_normalization_gradient, "src"_a,
                    "diff"_a, "epsilon"_a, "attributes"_a);
}

void product_primitives(nb::class_<PrimitiveDesc> &primitive) {
    recorded(primitive)
        .def_static(
            "matmul",
            [](const Operands &operands, const Attributes &attributes) {
                return matmul(operands, attributes);
            },
            "src_weights_bias_dst"_a, "attributes"_a,
            nb::sig("def matmul(src_weights_bias_dst: Sequence[MemoryDesc | None], "
                    "attributes: Attributes) -> PrimitiveDesc"))
        .def_static(
            "inner_product",
            [](const Operands &operands, const Attributes &attributes) {
                return inner_product(operands, attributes);
            },
            "src_weights_bias_dst"_a, "attributes"_a,
            nb::sig("def inner_product(src_weights_bias_dst: Sequence[MemoryDesc | None], "
                    "attributes: Attributes) -> PrimitiveDesc"));
}

void primitive_desc(nb::module_ &module) {
    auto primitive = nb::class_<PrimitiveDesc>(
        module, "PrimitiveDesc",
        "Implementation chosen for fixed shapes and layouts, not compiled yet.");
    window_primitives(primitive);
    elementwise_primitives(primitive);
    normalizing_primitives(primitive);
    convolution_gradients(primitive);
    other_gradients(primitive);
    product_primitives(primitive);
    recorded(primitive)
        .def_static(
            "reduction",
            [](const std::string &algorithm, const MemoryDesc &src, const MemoryDesc &dst,
               const Attributes &attributes) {
                return reduction(reduction_of(algorithm), src, dst, 2.0F, 0.0F, attributes);
            },
            "algorithm"_a, "src"_a, "dst"_a, "attributes"_a)
        .def_static(
            "resampling",
            [](bool linear, const MemoryDesc &src, const MemoryDesc &dst,
               const Attributes &attributes) {
                return resampling(linear ? dnnl_resampling_linear : dnnl_resampling_nearest, src,
                                  dst, attributes);
            },
            "linear"_a, "src"_a, "dst"_a, "attributes"_a)
        .def_static("shuffle", &shuffle, "src"_a, "dst"_a, "axis"_a, "group_size"_a, "attributes"_a)
        .def_static("reorder", &reorder, "src"_a, "dst"_a, "attributes"_a);
    primitive.def_prop_ro("implementation", &PrimitiveDesc::implementation)
        .def_prop_ro("signature", &PrimitiveDesc::signature)
        .def_prop_ro("scratchpad_bytes", &PrimitiveDesc::scratchpad_bytes)
        .def("operand", &PrimitiveDesc::operand, "argument"_a,
             "Return the layout of the operand of an argument number; null if it has none.")
        .def("next_implementation", &PrimitiveDesc::next_implementation)
        .def("reach", &PrimitiveDesc::reach,
             "Return arguments of a run, without the scratchpad, each with the bytes that may be "
             "touched.")
        .def_prop_ro("skipped", &PrimitiveDesc::skipped, "Number of implementations skipped.")
        .def_prop_ro(
            "recipe",
            [](const PrimitiveDesc &self) {
                return nb::bytes(self.recipe.data(), self.recipe.size());
            },
            "Bytes to make it again from, up to the implementation, if recorded; else empty.")
        .def_static(
            "of_recipe",
            [](nb::bytes bytes) {
                return made_again<PrimitiveDesc>({bytes.c_str(), bytes.size()});
            },
            "recipe"_a,
            "Make an object from a recipe; raises RecipeError, or as its factory does.");
}

} // namespace

void onednn(nb::module_ &module) {
    module.attr("HAS_ONEDNN") = true;
    library(module);
    memory_desc(module);
    attributes(module);
    primitive_desc(module);
}

} // namespace tightship::bind

#endif
