/// Products by matrices of block-quantized weights, and rows of such matrices.
#pragma once

#include "tightship/kernels/product/block_format.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace tightship::kernels {

/// Arithmetic of a product.
///
/// exact: activations as they are, sums in float32; the error is that of float32's sums, about
/// 1e-6 of the sum of magnitudes. int8: each block of a row of activations is rounded to
/// `round(a * 127 / max|a|)`, ties to even, and sums of integers are exact within a block; blocks
/// whose largest magnitude is below 2^-119 count as zero. A block of activations with an infinity
/// or a NaN makes the row NaN in int8.
enum class BlockMode : uint8_t { kExact, kInt8 };

/// Newest instructions that a kernel may use; loops are those of the processor at most.
enum class BlockLevel : uint8_t { kPortable, kAvx2, kAvx512, kVnni, kAmx };

struct BlockProductShape {
    int64_t rows, depth, columns;
    int64_t source_row, target_row; ///< bytes from row to row of float32
};

/// Makes a product of rows by a matrix of `columns` rows. Operands: source, quants, scales[, zero
/// points][, bias], target, scratch. Results do not depend on the number of threads.
std::shared_ptr<const Kernel> block_product(const BlockProductShape &shape,
                                            const BlockFormat &format, bool has_bias,
                                            BlockMode mode, BlockLevel most);

/// Rows of a matrix that indices select. Negative indices count from the end.
struct BlockGatherShape {
    std::string node; ///< named by errors
    int64_t index_bytes, count;
    int64_t rows, depth;
    int64_t target_row;    ///< bytes from row to row of float32
    bool zeros_if_outside; ///< else a run is refused before anything is written
};

/// Makes a gather of rows as float32. Operands: quants, scales[, zero points], indices, target.
std::shared_ptr<const Kernel> block_gather(const BlockGatherShape &shape,
                                           const BlockFormat &format);

/// Returns the newest instructions that this processor has for products.
BlockLevel block_level();

} // namespace tightship::kernels
