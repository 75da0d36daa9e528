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

/// Makes a product of rows by a matrix of `columns` rows, whose bytes follow one another. Operands:
/// source, encoded rows[, bias], target, scratch. Activations and sums are float32; results do not
/// depend on the number of threads. The depth must be a multiple of the unit's elements.
std::shared_ptr<const Kernel> encoded_product(const BlockProductShape &shape, RowCode type,
                                              bool has_bias, BlockLevel most);

/// Makes a gather of rows as float32. Operands: encoded rows, indices, target.
std::shared_ptr<const Kernel> encoded_gather(const BlockGatherShape &shape, RowCode type);

} // namespace tightship::kernels
