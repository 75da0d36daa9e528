/// Matrices whose rows are blocks of small integers, each block with a scale.
#pragma once

#include "tightship/kernel.hpp"

#include <cstdint>

namespace tightship::kernels {

/// Type of scales, and of zero points that are not packed.
enum class BlockFloat : uint8_t { kFloat32, kFloat16 };

/// Zero points: the middle of the integers' range; integers as the quants are; floats as the
/// scales.
enum class BlockZeros : uint8_t { kMiddle, kPacked, kFloats };

/// Encoding of a matrix: element k of row n is `(quant - zero) * scale`, the latter two those of
/// block `k / block`. Quants lie in `block * bits / 8` bytes, low bits first; packed zero points of
/// a row likewise. The middle is 2^(bits-1), or 0 if quants are signed. Strides are in bytes; that
/// of packed zero points from block to block is not used. If `scales_block` is 0, the blocks of a
/// row have one scale and one zero point.
struct BlockFormat {
    int64_t bits;  ///< 2, 4 or 8
    int64_t block; ///< elements, a power of two, at least 16
    bool is_signed;
    BlockFloat scale;
    BlockZeros zeros;
    int64_t quants_row, quants_block, scales_row, scales_block, zeros_row, zeros_block;
};

constexpr int64_t block_bytes(const BlockFormat &format) {
    return format.block * format.bits / 8;
}

constexpr int64_t blocks_of(const BlockFormat &format, int64_t depth) {
    return (depth + format.block - 1) / format.block;
}

/// Returns whether the blocks of a row have one scale and one zero point.
constexpr bool is_by_row(const BlockFormat &format) {
    return format.scales_block == 0;
}

constexpr int64_t float_bytes(BlockFloat type) {
    return type == BlockFloat::kFloat16 ? 2 : 4;
}

/// Appends the bytes that a run may touch of a matrix's operands: quants, scales[, zero points].
/// Throws std::invalid_argument if the format is impossible, or reaches too far.
void append_reach(const BlockFormat &format, int64_t rows, int64_t depth, std::vector<Reach> &all);

} // namespace tightship::kernels
