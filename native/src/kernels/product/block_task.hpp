/// Arguments of the loops of a product by quantized blocks: plain data, because the loops are
/// compiled for several instruction sets and must share no inline function with other code.
#pragma once

#include "tightship/kernels/product/block_product.hpp"

namespace tightship::kernels {

constexpr int64_t kBlockRows = 256;     ///< rows of activations that are prepared at once
constexpr int64_t kBlockSplitRows = 64; ///< likewise, if split into parts
constexpr int64_t kBlockFewRows = 8;    ///< rows of which each is multiplied as weights stream past
constexpr int64_t kBlockTile = 16;      ///< rows and columns of a tile of the matrix unit
constexpr int64_t kBlockDepth = 256;    ///< of a panel of float32
constexpr int64_t kBlockLine = 64;      ///< bytes of quants that loops take at once, at most
constexpr int64_t kBlockLanes = 16;     ///< blocks whose scales they take at once, at most
constexpr int64_t kBlockSummed = 1024;  ///< elements of a block that panels of int8 sum, at most
constexpr int64_t kBlockFloat = sizeof(float);
constexpr int64_t kBlockColumns = 64; ///< at least, of a thread
constexpr int64_t kBlockPanels = 2 * kBlockColumns * kBlockDepth * kBlockFloat; ///< bytes of two

/// Addresses of a matrix's parts.
struct BlockMatrix {
    const char *quants, *scales, *zeros;
};

/// Up to `kBlockRows` rows of activations, and columns from `first_column` to `column_end`.
struct BlockTask {
    BlockFormat format;
    BlockMatrix matrix;
    const float *bias; ///< null for none
    const char *source;
    char *target;
    char *shared;  ///< rows of activations in the loop's own form, `shared_row` bytes each
    char *scratch; ///< of this thread
    int64_t source_row, target_row, shared_row;
    int64_t rows, depth, blocks;
    int64_t first_column, column_end;
};

static constexpr int64_t block_round_up(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
}

/// Returns the elements of a row of prepared activations: whole blocks and whole lines.
static constexpr int64_t padded_depth(const BlockFormat &format, int64_t depth) {
    return block_round_up(block_round_up(depth, format.block), kBlockLine * 8 / format.bits);
}

static constexpr int64_t padded_blocks(const BlockFormat &format, int64_t depth) {
    return block_round_up(depth, format.block * kBlockLanes) / format.block;
}

/// Bytes of a row of activations rounded to int8: the numbers, sums of as many bytes as the row's
/// quants have, the scale of each block, and the sum of each block.
static constexpr int64_t int8_row_bytes(const BlockFormat &format, int64_t depth) {
    const int64_t numbers = padded_depth(format, depth);
    return numbers + numbers * format.bits / 8 + 2 * 4 * padded_blocks(format, depth);
}

/// Bytes of a row of activations split into three bfloat16, and the sum of each block.
static constexpr int64_t split_row_bytes(const BlockFormat &format, int64_t depth) {
    return 3 * 2 * padded_depth(format, depth) + 4 * padded_blocks(format, depth);
}

/// Prepares rows of activations from `first_row` to `row_end`.
using BlockPreparation = void (*)(const BlockTask &task, int64_t first_row, int64_t row_end);
using BlockLoop = void (*)(const BlockTask &task);

namespace portable {
/// Rounds a block to int8 and returns its scale; zeros behind `count`.
float round_block(const float *from, int64_t count, int64_t block, int8_t *to);
void multiply_exact(const BlockTask &task);
void round_to_int8(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_int8(const BlockTask &task);
} // namespace portable
namespace avx2 {
void prepare_exact(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_exact(const BlockTask &task);
void multiply_exact_rows(const BlockTask &task);
void round_to_int8(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_int8(const BlockTask &task);
void round_to_int8_panels(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_int8_panels(const BlockTask &task);
} // namespace avx2
namespace avx512 {
void prepare_exact(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_exact(const BlockTask &task);
void multiply_exact_rows(const BlockTask &task);
void round_to_int8(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_int8(const BlockTask &task);
} // namespace avx512
namespace vnni {
void round_to_int8(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_int8(const BlockTask &task);
void round_to_int8_panels(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_int8_panels(const BlockTask &task);
void round_to_int8_strips(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_int8_strips(const BlockTask &task);
} // namespace vnni
namespace amx {
void split_exact(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_exact(const BlockTask &task);
void round_to_int8(const BlockTask &task, int64_t first_row, int64_t row_end);
void multiply_int8(const BlockTask &task);
} // namespace amx

} // namespace tightship::kernels
