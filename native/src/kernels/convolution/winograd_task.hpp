/// Arguments of the loops of Winograd's convolution: plain data, because the loops are compiled
/// once for each instruction set and must share no inline function with other code.
#pragma once

#include "tightship/kernels/convolution/winograd.hpp"

namespace tightship::kernels {

constexpr int64_t kWinogradTile = 4;     ///< side of a tile of results
constexpr int64_t kWinogradReach = 6;    ///< side of the part of the source that a tile reads
constexpr int64_t kWinogradBlock = 32;   ///< outputs that are computed at once
constexpr int64_t kWinogradPlaces = 36;  ///< elements of a transformed tile
constexpr int64_t kWinogradBetween = 16; ///< floats between matrices, which keep them in other sets

/// Arguments of one run; null for no bias, no addend.
struct WinogradTask {
    const WinogradShape *shape;
    const float *source, *weights, *bias, *addend;
    float *target;
    int64_t tiles_at_once;
};

/// Scratch of a thread: transformed tiles [36][channels / depth][tiles][depth], weights
/// [36][depth][32], and products [36][tiles][32].
struct WinogradScratch {
    float *tiles, *weights, *products;
};

/// Tiles, of all images one after another, of which there are `tiles_at_once` at most.
struct WinogradPart {
    int64_t first_tile, tile_end;
};

/// Loops of one instruction set.
struct WinogradLoops {
    /// Transforms some channels of the part's tiles.
    void (*gather)(const WinogradTask &task, const WinogradPart &part, int64_t first_channel,
                   int64_t channel_end, float *tiles);
    /// Computes blocks of outputs of the part's tiles, which are transformed.
    void (*compute)(const WinogradTask &task, const WinogradPart &part, int64_t first_block,
                    int64_t block_end, const WinogradScratch &scratch);
};

namespace portable {
extern const WinogradLoops winograd_loops;
}
namespace avx2 {
extern const WinogradLoops winograd_loops;
}
namespace avx512 {
extern const WinogradLoops winograd_loops;
}

} // namespace tightship::kernels
