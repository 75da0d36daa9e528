#include "tightship/kernels/product/block_format.hpp"

#include "tightship/kernels/reach.hpp"

#include <bit>

namespace tightship::kernels {

namespace {

constexpr int64_t kBlockMin = 16, kBlockMax = int64_t{1} << 30;

void check(const BlockFormat &format) {
    require(format.bits == 2 || format.bits == 4 || format.bits == 8,
            "blocks of quants have 2, 4 or 8 bits");
    require(format.block >= kBlockMin && format.block <= kBlockMax &&
                std::has_single_bit(static_cast<uint64_t>(format.block)),
            "a block's elements are a power of two, at least 16");
    require(format.scale <= BlockFloat::kFloat16 && format.zeros <= BlockZeros::kFloats,
            "blocks have scales or zero points of an unknown kind");
    require(format.zeros != BlockZeros::kFloats || (format.zeros_block == 0) == is_by_row(format),
            "blocks of a row share either their scale or their zero point");
}

} // namespace

void append_reach(const BlockFormat &format, int64_t rows, int64_t depth, std::vector<Reach> &all) {
    check(format);
    require(depth > 0 && depth <= kReachMax - kBlockMax, "blocks of an impossible depth");
    const int64_t blocks = blocks_of(format, depth), item = float_bytes(format.scale);
    const Dims shape{rows, blocks};
    all.push_back(reach_of(shape, {format.quants_row, format.quants_block}, block_bytes(format)));
    all.push_back(reach_of(shape, {format.scales_row, format.scales_block}, item));
    if (format.zeros == BlockZeros::kFloats)
        all.push_back(reach_of(shape, {format.zeros_row, format.zeros_block}, item));
    if (format.zeros == BlockZeros::kPacked)
        all.push_back(reach_of({rows}, {format.zeros_row},
                               ((is_by_row(format) ? 1 : blocks) * format.bits + 7) / 8));
}

} // namespace tightship::kernels
