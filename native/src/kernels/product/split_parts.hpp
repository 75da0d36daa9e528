/// Numbers split into tiles of bfloat16. Included by the loops of a split product.
#pragma once

#include "split_task.hpp"

#include <immintrin.h>

namespace tightship::kernels::amx {

namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kTileBytes = 1024;
constexpr int64_t kTileRowBytes = 64;
constexpr int64_t kParts = 3; ///< of a float32, the most significant first

/// Three bfloat16 whose sum is a float32, each in the upper half of a lane. The first is rounded,
/// so that the remainder in the others is of either sign.
struct Parts {
    __m512i part[kParts];
};

inline Parts parts_of(__m512i number) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
    Parts result;
    result.part[0] = _mm512_and_si512(_mm512_add_epi32(number, _mm512_set1_epi32(0x8000)), upper);
    const __m512 rest =
        _mm512_sub_ps(_mm512_castsi512_ps(number), _mm512_castsi512_ps(result.part[0]));
    result.part[1] = _mm512_and_si512(_mm512_castps_si512(rest), upper);
    result.part[2] = _mm512_castps_si512(_mm512_sub_ps(rest, _mm512_castsi512_ps(result.part[1])));
    return result;
}

inline __mmask16 first_lanes(int64_t count) {
    return static_cast<__mmask16>(count >= kLanes ? 0xFFFF : count <= 0 ? 0 : (1u << count) - 1);
}

/// Packs the upper halves of the lanes of `low`, then of `high`.
inline __m512i in_order(__m512i low, __m512i high) {
    alignas(64) static constexpr uint16_t kUpper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                        23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                        45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    return _mm512_permutex2var_epi16(low, _mm512_load_si512(kUpper), high);
}

/// Packs the upper halves of the lanes of both, alternately.
inline __m512i by_turns(__m512i even, __m512i odd) {
    return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(even, 16), odd);
}

/// Splits some rows into tiles: [tile of rows][step of depth][part]; zeros behind the last row.
inline void split_source(const float *source, int64_t stride, int64_t rows, int64_t depth,
                         char *tiles) {
    const int64_t steps = (depth + kSplitStep - 1) / kSplitStep;
    for (int64_t row = 0; row < round_up(rows, kSplitTile); ++row)
        for (int64_t step = 0; step < steps; ++step) {
            char *to = tiles + (row / kSplitTile * steps + step) * kParts * kTileBytes +
                       row % kSplitTile * kTileRowBytes;
            const int64_t left = row < rows ? depth - step * kSplitStep : 0;
            const float *from = row < rows ? source + row * stride + step * kSplitStep : source;
            const Parts low = parts_of(_mm512_maskz_loadu_epi32(first_lanes(left), from));
            const Parts high =
                parts_of(_mm512_maskz_loadu_epi32(first_lanes(left - kLanes), from + kLanes));
            for (int64_t part = 0; part < kParts; ++part)
                _mm512_store_si512(to + part * kTileBytes,
                                   in_order(low.part[part], high.part[part]));
        }
}

/// Columns whose parts become tiles, two rows of the depth in each row of a tile: [step of
/// depth][part][tile of columns]; zeros behind the last row.
struct Columns {
    const float *weights;
    int64_t depth;
    char *tiles;
    int64_t done; ///< rows
    int64_t tile;

    bool is_done() const { return done == round_up(depth, kSplitStep); }

    /// Splits one tile's part of two rows.
    void split_some() {
        char *to = tiles + done / kSplitStep * 2 * kParts * kTileBytes + tile * kTileBytes +
                   done % kSplitStep / 2 * kTileRowBytes;
        const float *from = weights + done * kSplitPanel + tile * kLanes;
        const Parts even = parts_of(_mm512_maskz_loadu_epi32(done < depth ? 0xFFFF : 0, from));
        const Parts odd =
            parts_of(_mm512_maskz_loadu_epi32(done + 1 < depth ? 0xFFFF : 0, from + kSplitPanel));
        for (int64_t part = 0; part < kParts; ++part)
            _mm512_store_si512(to + part * 2 * kTileBytes,
                               by_turns(even.part[part], odd.part[part]));
        done += tile * 2;
        tile = 1 - tile;
    }

    void split_all() {
        while (!is_done())
            split_some();
    }
};

} // namespace

} // namespace tightship::kernels::amx
