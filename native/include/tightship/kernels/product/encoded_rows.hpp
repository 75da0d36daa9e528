/// Products by matrices whose rows are encoded as GGUF files have them, and rows of such matrices.
#pragma once

#include "tightship/kernels/product/block_product.hpp"

namespace tightship::kernels {

/// Encoding of a row: halves, or blocks of 32 or 256 small integers with scales, as llama.cpp names
/// them.
enum class RowCode : uint8_t { kF16, kBf16, kQ4_1, kQ5_0, kQ5_1, kQ4K, kQ5K, kQ6K };

/// Elements of a row that are decoded together, and their bytes.
struct RowUnit {
    int64_t elements, bytes;
};

constexpr RowUnit row_unit(RowCode type) {
    constexpr RowUnit kUnits[] = {{32, 64}, {32, 64},   {32, 20},   {32, 22},
                                  {32, 24}, {256, 144}, {256, 176}, {256, 210}};
    return kUnits[static_cast<size_t>(type)];
}

/// Returns whether rows are elements of 16 bits, without blocks.
constexpr bool is_halves(RowCode type) {
    return type == RowCode::kF16 || type == RowCode::kBf16;
}

/// Makes a product of rows by a matrix of `columns` rows, whose bytes follow one another. Operands:
/// source, encoded rows[, bias], target, scratch. Activations are those of the mode, the blocks
/// that are rounded to int8 the elements that share a scale of the weights: 32, or 16 of Q6_K.
/// Halves have no mode int8. Sums are float32; results do not depend on the number of threads. The
/// depth must be a multiple of the unit's elements.
std::shared_ptr<const Kernel> encoded_product(const BlockProductShape &shape, RowCode type,
                                              bool has_bias, BlockMode mode, BlockLevel most);

/// Makes a gather of rows as float32. Operands: encoded rows, indices, target.
std::shared_ptr<const Kernel> encoded_gather(const BlockGatherShape &shape, RowCode type);

} // namespace tightship::kernels
