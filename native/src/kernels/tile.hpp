/// Products of a few rows by a few vectors, held in registers. Included by loops that are compiled
/// once for each instruction set: defines TIGHTSHIP_ISA (a namespace) and TIGHTSHIP_VECTOR_BYTES.
#pragma once

#include <cstdint>

#if TIGHTSHIP_VECTOR_BYTES == 64
#include <immintrin.h>
#endif

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int kWidth = TIGHTSHIP_VECTOR_BYTES / 4;
constexpr int kTileRows = 6;
/// Vectors in a tile, as many as keep its accumulators in the 32 or 16 registers.
constexpr int kTileVectors = TIGHTSHIP_VECTOR_BYTES == 64 ? 4 : 2;
constexpr int kPanel = kTileVectors * kWidth;

typedef float Vector __attribute__((vector_size(TIGHTSHIP_VECTOR_BYTES)));
typedef int32_t Ints __attribute__((vector_size(TIGHTSHIP_VECTOR_BYTES)));
typedef Vector Unaligned __attribute__((aligned(4), may_alias));

inline Vector load(const float *from) {
    return *reinterpret_cast<const Unaligned *>(from);
}

inline void store(float *to, Vector value) {
    *reinterpret_cast<Unaligned *>(to) = value;
}

/// Loads the first `count` elements, with zeros behind them.
inline Vector load_some(const float *from, int64_t count) {
    if (count >= kWidth)
        return load(from);
#if TIGHTSHIP_VECTOR_BYTES == 64
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1U), from);
#else
    Vector result{};
    for (int64_t lane = 0; lane < count; ++lane)
        result[lane] = from[lane];
    return result;
#endif
}

inline void store_some(float *to, Vector value, int64_t count) {
    if (count >= kWidth)
        return store(to, value);
#if TIGHTSHIP_VECTOR_BYTES == 64
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1U), value);
#else
    for (int64_t lane = 0; lane < count; ++lane)
        to[lane] = value[lane];
#endif
}

inline Vector spread(float value) {
    return value - Vector{};
}

/// Rows of the left operand, and the distance of its elements.
struct Left {
    const float *data;
    int64_t row, step;
};

/// Vectors of the right operand side by side, `step` elements from one depth to the next.
struct Right {
    const float *data;
    int64_t step;
};

/// Destination of a product: target = (target * kept[row] + product) * factor[row]. Without `kept`
/// the target is not read; without `factor` it is one.
struct Target {
    float *data;
    int64_t row;
    const float *kept, *factor;
};

template <int Rows, int Vectors>
void tile(const Left &left, const Right &right, int64_t depth, const Target &target) {
    const float *rows[Rows];
    for (int row = 0; row < Rows; ++row)
        rows[row] = left.data + row * left.row;
    Vector sums[Rows][Vectors] = {};
    const float *vectors = right.data;
    for (int64_t index = 0; index < depth; ++index, vectors += right.step) {
        Vector operands[Vectors];
        for (int vector = 0; vector < Vectors; ++vector)
            operands[vector] = load(vectors + vector * kWidth);
#pragma GCC unroll 6
        for (int row = 0; row < Rows; ++row) {
            const Vector factor = spread(rows[row][index * left.step]);
            for (int vector = 0; vector < Vectors; ++vector)
                sums[row][vector] += factor * operands[vector];
        }
    }
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 8
        for (int vector = 0; vector < Vectors; ++vector) {
            float *to = target.data + row * target.row + vector * kWidth;
            Vector sum = sums[row][vector];
            if (target.kept != nullptr)
                sum += load(to) * target.kept[row];
            if (target.factor != nullptr)
                sum *= target.factor[row];
            store(to, sum);
        }
}

using Tile = void (*)(const Left &, const Right &, int64_t, const Target &);

template <int Vectors> Tile tile_of(int64_t rows) {
    constexpr Tile tiles[] = {tile<1, Vectors>, tile<2, Vectors>, tile<3, Vectors>,
                              tile<4, Vectors>, tile<5, Vectors>, tile<6, Vectors>};
    return tiles[rows - 1];
}

/// Returns the function for a tile of up to `kTileRows` rows and `kTileVectors` vectors.
inline Tile tile_of(int64_t rows, int64_t vectors) {
    if constexpr (kTileVectors == 4) {
        if (vectors == 4)
            return tile_of<4>(rows);
        if (vectors == 3)
            return tile_of<3>(rows);
    }
    return vectors == 2 ? tile_of<2>(rows) : tile_of<1>(rows);
}

typedef float Four __attribute__((vector_size(16)));

/// Transposes four rows of four.
inline void transpose_four(Four a, Four b, Four c, Four d, float *to, int64_t to_row) {
    typedef Four Unaligned4 __attribute__((aligned(4), may_alias));
    const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const Four columns[] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                            __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                            __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                            __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    for (int64_t index = 0; index < 4; ++index)
        *reinterpret_cast<Unaligned4 *>(to + index * to_row) = columns[index];
}

/// Loads four elements, which need not be aligned.
inline Four load_four(const void *from) {
    Four result;
    __builtin_memcpy(&result, from, sizeof result);
    return result;
}

/// Transposes four rows of four elements, `row` elements apart.
inline void transpose_four(const float *from, int64_t row, float *to, int64_t to_row) {
    transpose_four(load_four(from), load_four(from + row), load_four(from + 2 * row),
                   load_four(from + 3 * row), to, to_row);
}

/// Packs a panel of `columns` of a matrix `depth` deep, `kPanel` elements from one depth to the
/// next, padded with zeros to whole vectors.
inline void pack_panel(const float *from, int64_t depth_step, int64_t column_step, int64_t depth,
                       int64_t columns, float *to) {
    int64_t packed = 0;
    if (depth_step == 1)
        for (; packed + 4 <= columns; packed += 4) {
            int64_t index = 0;
            for (; index + 4 <= depth; index += 4)
                transpose_four(from + packed * column_step + index, column_step,
                               to + index * kPanel + packed, kPanel);
            for (; index < depth; ++index)
                for (int64_t column = packed; column < packed + 4; ++column)
                    to[index * kPanel + column] = from[index + column * column_step];
        }
    else if (column_step == 1)
        for (; packed + kWidth <= columns; packed += kWidth)
            for (int64_t index = 0; index < depth; ++index)
                store(to + index * kPanel + packed, load(from + index * depth_step + packed));
    const int64_t whole = (columns + kWidth - 1) / kWidth * kWidth;
    for (int64_t index = 0; index < depth; ++index)
        for (int64_t column = packed; column < whole; ++column)
            to[index * kPanel + column] =
                column < columns ? from[index * depth_step + column * column_step] : 0.0F;
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
