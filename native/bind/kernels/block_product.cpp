#include "tightship/kernels/product/block_product.hpp"
#include "recorded.hpp"
#include "tightship/kernels/product/encoded_rows.hpp"
#include "tightship/kernels/recipes.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

/// Returns the position of a name among those given, as an enumerator.
template <class Enum, size_t kCount>
Enum enumerator(std::string_view name, const char *const (&names)[kCount], const char *what) {
    std::string known;
    for (size_t index = 0; index < kCount; ++index) {
        if (name == names[index])
            return static_cast<Enum>(index);
        known += std::string(index == 0 ? "`" : ", `") + names[index] + "`";
    }
    throw std::invalid_argument("Unknown " + std::string(what) + " `" + std::string(name) +
                                "`; choose among " + known + ".");
}

constexpr const char *kLevels[] = {"portable", "avx2", "avx512", "vnni", "amx"};

std::shared_ptr<const Kernel> block_product(const std::array<int64_t, 3> &counts,
                                            const kernels::BlockFormat &format, bool has_bias,
                                            const std::string &mode,
                                            std::pair<int64_t, int64_t> row_strides,
                                            const std::string &most) {
    const auto [source_row, target_row] = row_strides;
    return kernels::block_product(
        {counts[0], counts[1], counts[2], source_row, target_row}, format, has_bias,
        enumerator<kernels::BlockMode>(mode, {"exact", "int8"}, "mode of a block product"),
        enumerator<kernels::BlockLevel>(most, kLevels, "level of a block product"));
}

std::shared_ptr<const Kernel> block_gather(const std::string &node,
                                           std::pair<int64_t, int64_t> indices,
                                           std::pair<int64_t, int64_t> table,
                                           const kernels::BlockFormat &format, int64_t target_row,
                                           bool zeros_if_outside) {
    return kernels::block_gather({node, indices.first, indices.second, table.first, table.second,
                                  target_row, zeros_if_outside},
                                 format);
}

constexpr const char *kRowTypes[] = {"F16", "BF16", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"};

template <kernels::BlockMode kMode>
std::shared_ptr<const Kernel>
encoded_product(const std::array<int64_t, 3> &counts, const std::string &type, bool has_bias,
                std::pair<int64_t, int64_t> row_strides, const std::string &most) {
    const auto [source_row, target_row] = row_strides;
    return kernels::encoded_product(
        {counts[0], counts[1], counts[2], source_row, target_row},
        enumerator<kernels::RowCode>(type, kRowTypes, "type of encoded rows"), has_bias, kMode,
        enumerator<kernels::BlockLevel>(most, kLevels, "level of a block product"));
}

std::shared_ptr<const Kernel> encoded_gather(const std::string &node,
                                             std::pair<int64_t, int64_t> indices,
                                             std::pair<int64_t, int64_t> table,
                                             const std::string &type, int64_t target_row) {
    return kernels::encoded_gather(
        {node, indices.first, indices.second, table.first, table.second, target_row, false},
        enumerator<kernels::RowCode>(type, kRowTypes, "type of encoded rows"));
}

void encoded_product_kernels(nb::class_<Kernel> &kernel) {
    recorded(kernel)
        .def_static(
            "encoded_product", &encoded_product<kernels::BlockMode::kExact>, "rows_depth_columns"_a,
            "type"_a, "has_bias"_a, "row_strides"_a, "most"_a = "amx",
            "Make a product of rows by a matrix of encoded rows, one for each column, in float32. "
            "Operands: source, encoded rows[, bias], target, scratch. `type`: F16, BF16, or blocks "
            "as GGUF files have them: Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K. `row_strides` and `most` "
            "as for `block_product`.")
        .def_static(
            "encoded_product_int8", &encoded_product<kernels::BlockMode::kInt8>,
            "rows_depth_columns"_a, "type"_a, "has_bias"_a, "row_strides"_a, "most"_a = "amx",
            "Make a product as `encoded_product` does, with activations rounded to int8 in blocks "
            "of the elements that share a scale of the weights: 32, or 16 of Q6_K. `type` must be "
            "one of blocks.")
        .def_static(
            "encoded_gather", &encoded_gather, "node"_a, "indices"_a, "table"_a, "type"_a,
            "target_row"_a,
            "Make a gather of encoded rows as float32. Operands: encoded rows, indices, target; "
            "arguments as for `encoded_product` and `block_gather`.");
}

} // namespace

void block_product_kernels(nb::module_ &module, nb::class_<Kernel> &kernel) {
    nb::class_<kernels::BlockFormat>(
        kernel, "BlockFormat",
        "Encoding of a matrix whose rows are blocks of `bits` (2, 4 or 8) an element, low bits "
        "first. `scale`: float32 or float16; `zeros`: middle, packed or floats (as the scales). "
        "`strides` in bytes, from row to row and block to block: of quants, scales, zero points; 0 "
        "from block to block of scales if the blocks of a row have one scale and one zero point.")
        .def(
            "__init__",
            [](kernels::BlockFormat *self, int64_t bits, int64_t block, bool is_signed,
               std::string_view scale, std::string_view zeros,
               const std::array<int64_t, 6> &strides) {
                new (self) kernels::BlockFormat{
                    bits,
                    block,
                    is_signed,
                    enumerator<kernels::BlockFloat>(scale, {"float32", "float16"},
                                                    "type of scales"),
                    enumerator<kernels::BlockZeros>(zeros, {"middle", "packed", "floats"},
                                                    "kind of zero points"),
                    strides[0],
                    strides[1],
                    strides[2],
                    strides[3],
                    strides[4],
                    strides[5]};
            },
            "bits"_a, "block"_a, "is_signed"_a, "scale"_a, "zeros"_a, "strides"_a);
    module.def(
        "block_level", [] { return kLevels[static_cast<size_t>(kernels::block_level())]; },
        "Return the newest instructions that block products use on this processor: portable, "
        "avx2, avx512, vnni or amx.");
    recorded(kernel)
        .def_static(
            "block_product", &block_product, "rows_depth_columns"_a, "format"_a, "has_bias"_a,
            "mode"_a, "row_strides"_a, "most"_a = "amx",
            "Make a product of rows by a matrix of block-quantized rows, one for each column. "
            "Operands: source, quants, scales[, zero points][, bias], target, scratch. `mode`: "
            "exact (float32) or int8 (activations rounded by block). `row_strides`: bytes from row "
            "to row of source and target. `most`: newest instructions to use, for tests.")
        .def_static(
            "block_gather", &block_gather, "node"_a, "indices"_a, "table"_a, "format"_a,
            "target_row"_a, "zeros_if_outside"_a,
            "Make a gather of rows as float32. Operands: quants, scales[, zero points], indices, "
            "target. `indices`: bytes of one (4 or 8), their number; `table`: rows, elements of a "
            "row; `target_row`: bytes from row to row. An index outside selects zeros or is "
            "refused before anything is written; a negative one counts from the end.");
    encoded_product_kernels(kernel);
}

} // namespace tightship::bind
