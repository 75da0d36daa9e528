/// Sums of values as they are stored, by the weights of few queries. Compiled once for each
/// instruction set.
#pragma once

#include "attention_rows.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Values of a block of keys, from a column on; rows are `row` bytes apart, and the scales of
/// those of int8 `scale` bytes behind the column.
struct Stored {
    const char *data;
    int64_t row, scale;
};

/// Rows to fetch for later, one after each that is read: `bytes` of each, `row` apart.
struct Later {
    const char *data;
    int64_t row, bytes, count;
};

/// Computes what `tile` does, of rows that are widened in registers; memory, which would have
/// nothing to do, fetches others meanwhile.
template <RowType kType, int Rows, int Vectors>
void stored_tile(const Left &weights, const Stored &values, int64_t count, const Later &later,
                 const Target &target) {
    Vector sums[Rows][Vectors] = {};
    const char *from = values.data;
    for (int64_t key = 0; key < count; ++key, from += values.row) {
        if (key < later.count)
            for (int64_t place = 0; place < later.bytes; place += kLineBytes)
                __builtin_prefetch(later.data + key * later.row + place);
        const float scale = scale_of<kType>(from, values.scale);
        Vector some[Vectors];
#pragma GCC unroll 4
        for (int vector = 0; vector < Vectors; ++vector) {
            some[vector] =
                load_stored<kType>(from + vector * kWidth * element_bytes(kType), kWidth);
            if (kType == RowType::kInt8)
                some[vector] *= scale;
        }
#pragma GCC unroll 6
        for (int row = 0; row < Rows; ++row) {
            const Vector weight = spread(weights.data[row * weights.row + key]);
#pragma GCC unroll 4
            for (int vector = 0; vector < Vectors; ++vector)
                sums[row][vector] += weight * some[vector];
        }
    }
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
        for (int vector = 0; vector < Vectors; ++vector) {
            float *to = target.data + row * target.row + vector * kWidth;
            Vector sum = sums[row][vector];
            if (target.kept != nullptr)
                sum += load(to) * target.kept[row];
            store(to, sum);
        }
}

using StoredTile = void (*)(const Left &, const Stored &, int64_t, const Later &, const Target &);

template <RowType kType, int Vectors> StoredTile stored_tile_of(int64_t rows) {
    constexpr StoredTile tiles[] = {stored_tile<kType, 1, Vectors>, stored_tile<kType, 2, Vectors>,
                                    stored_tile<kType, 3, Vectors>, stored_tile<kType, 4, Vectors>,
                                    stored_tile<kType, 5, Vectors>, stored_tile<kType, 6, Vectors>};
    return tiles[rows - 1];
}

template <RowType kType> StoredTile stored_tile_of(int64_t rows, int64_t vectors) {
    if constexpr (kTileVectors == 4) {
        if (vectors == 4)
            return stored_tile_of<kType, 4>(rows);
        if (vectors == 3)
            return stored_tile_of<kType, 3>(rows);
    }
    return vectors == 2 ? stored_tile_of<kType, 2>(rows) : stored_tile_of<kType, 1>(rows);
}

/// Returns the function for values of a type and up to `kTileRows` rows and `kTileVectors` vectors.
inline StoredTile stored_tile_of(RowType type, int64_t rows, int64_t vectors) {
    constexpr StoredTile (*kTypes[])(int64_t, int64_t) = {
        stored_tile_of<RowType::kFloat32>, stored_tile_of<RowType::kFloat16>,
        stored_tile_of<RowType::kBfloat16>, stored_tile_of<RowType::kInt8>};
    return kTypes[static_cast<int>(type)](rows, vectors);
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
