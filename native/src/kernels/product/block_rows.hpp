/// Rows of a matrix of quantized blocks whose parts lie together, a vector of blocks at a time.
/// Included by loops that are compiled once for each instruction set.
#pragma once

#include "block_lanes.hpp"

#include <type_traits>

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Constants that loops derive from a format.
template <int Bits> struct Decoder {
    static constexpr int kMiddle = 1 << (Bits - 1);
    static constexpr int kMask = (1 << Bits) - 1;

    explicit Decoder(const BlockFormat &format)
        : sign(format.is_signed ? kMiddle : 0), is_half(format.scale == BlockFloat::kFloat16),
          is_by_row(format.scales_block == 0), zeros(format.zeros), bytes(block_bytes(format)),
          scale_bytes(format.scales_block) {
        while ((int64_t{4} << shift) < bytes)
            ++shift;
    }

    Vector floats(const char *from, int64_t block, int64_t count) const {
        if (is_by_row)
            return first_of(loaded(from, 0, 1), count);
        return loaded(from, block, count);
    }

    Vector loaded(const char *from, int64_t block, int64_t count) const {
        return is_half ? load_halves(from + 2 * block, count)
                       : load_some(reinterpret_cast<const float *>(from) + block, count);
    }

    /// Returns the middle less each zero point.
    Vector zero(const char *from, int64_t block, int64_t count) const {
        if (zeros == BlockZeros::kFloats)
            return spread(sign == 0 ? static_cast<float>(kMiddle) : 0.0F) -
                   floats(from, block, count);
        if (is_by_row)
            return first_of(floats_of(kMiddle - (integers(from, 1) ^ sign)), count);
        return floats_of(kMiddle - (integers(from + block * Bits / 8, count) ^ sign));
    }

    /// Returns the first lane in the first `count` lanes, and zeros behind them.
    static Vector first_of(Vector from, int64_t count) {
        return lane_numbers() < static_cast<int>(count) ? spread(from[0]) : Vector{};
    }

    /// Returns the block of each lane of the vector at `line`, counted from the first line's.
    Ints block_of(int64_t line) const {
        return (lane_numbers() + static_cast<int>(line * kWidth)) >> shift;
    }

    /// Returns the block of each lane of four transposed lines, counted from the first of them.
    /// REQUIRES: a block has 16 bytes at least.
    Ints block_of_chunk() const { return chunks_of_lanes() >> (shift - 2); }

    /// Unpacks integers that lie one after another.
    static Ints integers(const char *from, int64_t count) {
        uint8_t given[kWidth] = {};
        if (count == kWidth)
            __builtin_memcpy(given, from, kWidth * Bits / 8);
        else
            __builtin_memcpy(given, from, static_cast<size_t>((count * Bits + 7) / 8));
        if constexpr (Bits == 8) {
            return naturals(reinterpret_cast<const char *>(given));
        } else {
            constexpr int kPerWord = 32 / Bits;
            uint32_t words[2];
            __builtin_memcpy(words, given, sizeof words);
            const Ints lane = lane_numbers();
            const Ints word = lane < kPerWord ? static_cast<int>(words[0]) - Ints{}
                                              : static_cast<int>(words[1]) - Ints{};
            return (word >> (lane % kPerWord * Bits)) & kMask;
        }
    }

    int sign;
    bool is_half;
    bool is_by_row; ///< the blocks of a row have one scale and one zero point
    BlockZeros zeros;
    int64_t bytes;       ///< of a block
    int64_t scale_bytes; ///< from scale to scale
    int shift = 0;       ///< a block has 2^shift lanes
};

constexpr int64_t kStripColumns = 4;
constexpr int64_t kFetchedLeast = 4096; ///< bytes of quants that are fetched ahead
constexpr int64_t kFetchedMost = 16384; ///< likewise, in later columns; they stay in the cache
constexpr int64_t kFetchedInRow = 2048; ///< likewise, in long rows
constexpr int64_t kPageAhead = 4096;    ///< likewise, of columns one after the other
constexpr int64_t kShortRow = 512;      ///< bytes; few rows of activations take longer ones singly
constexpr int kSingleRows = 2;          ///< of activations, at most, that do

/// Bytes by which weights are fetched ahead. Weights pass once through the caches, in as many
/// streams as a strip has columns, which the processor's own prefetching does not follow: those of
/// the next strips are fetched meanwhile. It does follow long columns one after the other within a
/// page, which one or two rows of activations take so: they wait for memory otherwise.
struct Ahead {
    explicit Ahead(const BlockFormat &format) {
        const int64_t strip = kStripColumns * format.quants_row;
        const int64_t strips = strip < kFetchedLeast ? (kFetchedLeast + strip - 1) / strip : 1;
        const bool is_long = strip > kFetchedMost;
        quants = is_long ? kFetchedInRow : strips * strip;
        scales = is_long ? 0 : strips * kStripColumns * format.scales_row;
    }

    int64_t quants, scales;
};

/// Arguments that all tiles of a task have.
template <int Bits> struct Common {
    explicit Common(const BlockTask &task) : task(task), decoder(task.format), ahead(task.format) {}

    const BlockTask &task;
    Decoder<Bits> decoder;
    Ahead ahead;
};

/// Some columns of the product, that is rows of the matrix, next to one another.
template <int Bits, int Columns> struct Strip {
    Strip(const Common<Bits> &common, int64_t column) : ahead(common.ahead) {
        const BlockFormat &format = common.task.format;
        const BlockMatrix &matrix = common.task.matrix;
        for (int each = 0; each < Columns; ++each) {
            quants[each] = matrix.quants + (column + each) * format.quants_row;
            scales[each] = matrix.scales + (column + each) * format.scales_row;
            zeros[each] = matrix.zeros + (column + each) * format.zeros_row;
        }
    }

    /// Fetches quants, that is `kLine` bytes of each column from `at` on of later ones.
    void fetch_quants(int64_t at) const {
        for (int column = 0; column < Columns; ++column)
            __builtin_prefetch(quants[column] + at + ahead.quants);
    }

    /// Fetches the scales of a vector of blocks.
    void fetch_scales(int64_t at) const {
        for (int column = 0; column < Columns; ++column)
            __builtin_prefetch(scales[column] + at + ahead.scales);
    }

    const char *quants[Columns], *scales[Columns], *zeros[Columns];
    Ahead ahead;
};

/// Loads a vector into a register, where GCC would load it anew for each column's product.
inline Vector loaded_once(const float *from) {
    Vector some = load(from);
    asm("" : "+v"(some));
    return some;
}

/// Writes the sums of a tile, whose lanes `add` adds.
template <int Columns, int Rows>
[[gnu::always_inline]] inline void
write_sums(const BlockTask &task, int64_t row, int64_t column, const Vector (&sums)[Columns][Rows],
           void (&add)(const Vector (&)[Rows * Columns], float *) = add_lanes<Rows * Columns>) {
    Vector each_sum[Rows * Columns]; // a copy, so that sums need no memory while they are made
    float totals[Rows * Columns];
#pragma GCC unroll 16
    for (int each = 0; each < Rows * Columns; ++each)
        each_sum[each] = sums[each % Columns][each / Columns];
    add(each_sum, totals);
    typedef float Some __attribute__((vector_size(sizeof(float) * Columns)));
    Some bias{};
    if (task.bias != nullptr)
        __builtin_memcpy(&bias, task.bias + column, sizeof bias);
#pragma GCC unroll 8
    for (int line = 0; line < Rows; ++line) {
        Some some;
        __builtin_memcpy(&some, totals + line * Columns, sizeof some);
        if (task.bias != nullptr)
            some += bias;
        __builtin_memcpy(task.target + (row + line) * task.target_row + column * kBlockFloat, &some,
                         sizeof some);
    }
}

/// Covers some rows of a strip by tiles whose sums fit the registers.
template <template <int, int, int> class Tile, int Bits, int Rows>
void cover_rows(const Common<Bits> &common, int64_t column, int64_t row) {
    const auto cover = [&]<int Columns>(std::integral_constant<int, Columns>) {
        for (int64_t after = 0; after < kStripColumns; after += Columns)
            Tile<Bits, Columns, Rows>::run(common, column + after, row);
    };
    if (Tile<Bits, 1, Rows>::kIsSingle && common.task.format.quants_row > kShortRow)
        return cover(std::integral_constant<int, 1>());
    cover(std::integral_constant < int, Rows<4 ? kStripColumns : kStripColumns / 2>());
}

/// Calls `body(count, row)` for rows in parts of `Most`, half as many and so on, the count a
/// constant.
template <int Most, class Body> void by_few(int64_t rows, const Body &body, int64_t row = 0) {
    for (; rows - row >= Most; row += Most)
        body(std::integral_constant<int, Most>(), row);
    if constexpr (Most > 1)
        by_few<Most / 2>(rows, body, row);
}

/// Covers a task by tiles of up to `Most` rows, so that each column's weights are read from memory
/// once. The sums of a row have one order of additions in every tile.
template <template <int, int, int> class Tile, int Most, int Bits>
void cover(const BlockTask &task) {
    const Common<Bits> common(task);
    int64_t column = task.first_column;
    for (; column + kStripColumns <= task.column_end; column += kStripColumns)
        by_few<Most>(task.rows, [&]<int Rows>(std::integral_constant<int, Rows>, int64_t row) {
            cover_rows<Tile, Bits, Rows>(common, column, row);
        });
    for (; column < task.column_end; ++column)
        by_few<Most>(task.rows, [&]<int Rows>(std::integral_constant<int, Rows>, int64_t row) {
            Tile<Bits, 1, Rows>::run(common, column, row);
        });
}

template <template <int, int, int> class Tile, int Most> void cover(const BlockTask &task) {
    if (task.format.bits == 8)
        cover<Tile, Most, 8>(task);
    else if (task.format.bits == 4)
        cover<Tile, Most, 4>(task);
    else
        cover<Tile, Most, 2>(task);
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
