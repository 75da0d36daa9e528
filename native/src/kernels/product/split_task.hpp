/// Arguments of the loops of a split product: plain data, because the loops are compiled for
/// another instruction set and must share no inline function with other code.
#pragma once

#include "tightship/kernels/product/split_product.hpp"

namespace tightship::kernels {

constexpr int64_t kSplitRows = 256;   ///< rows whose parts lie in the cache at once
constexpr int64_t kSplitDepth = 256;  ///< likewise
constexpr int64_t kSplitColumns = 32; ///< of the weights
constexpr int64_t kSplitPanel = 64;   ///< columns that are packed together
constexpr int64_t kSplitTile = 16;    ///< rows of a tile, and columns of its sums
constexpr int64_t kSplitStep = 32;    ///< depth of a tile
constexpr int64_t kSplitBytes = 6;    ///< of a number's three parts

static constexpr int64_t round_up(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
}

/// Returns how much of the depth is computed at a time.
static constexpr int64_t split_depth(int64_t depth) {
    const int64_t blocks = (depth + kSplitDepth - 1) / kSplitDepth;
    return round_up((depth + blocks - 1) / blocks, kSplitStep);
}

/// Returns the bytes of the parts of some rows, and of some columns twice.
static constexpr int64_t split_scratch_bytes(int64_t rows, int64_t depth) {
    const int64_t most = rows < kSplitRows ? rows : kSplitRows;
    return (round_up(most, kSplitTile) + 2 * kSplitColumns) * split_depth(depth) * kSplitBytes;
}

/// Rows from `first_row` on, and columns from `first_column` on, a multiple of `kSplitColumns`.
struct SplitTask {
    const float *source, *weights, *bias, *addend; ///< bias and addend null for none
    float *target;
    char *scratch;
    SplitShape shape;
    SplitEnding ending;
    int64_t first_row, row_end, first_column, column_end;
};

namespace amx {
void multiply(const SplitTask &task);
}

} // namespace tightship::kernels
