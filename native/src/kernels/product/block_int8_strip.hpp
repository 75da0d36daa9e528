/// Products of some rows of activations rounded to int8: quants are unpacked in registers, for up
/// to eight rows at once. Included by loops of an instruction set with dot products of bytes and
/// vectors of 64 bytes.
///
/// A strip is a vector of columns, whose quants come 16 bytes of each at a time, a chunk:
/// transposed, a lane has a word of a column. Columns read so are scattered in memory, which is
/// slower than one after the other; it pays for as many rows as compute longer than memory takes.
///
/// Sums have the order of tiles, in which a lane has every 16th chunk of a column and lanes are
/// added by halves: a row has the same bits among few rows and among more.
#pragma once

#include "block_columns.hpp"
#include "block_int8_panel.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int64_t kChunk = 16;    ///< bytes of a column that are unpacked at once
constexpr int64_t kChunks = 16;   ///< whose sums are added at the end
constexpr int64_t kNearRow = 384; ///< bytes of a column at most, if two strips fit the first cache
/// Lines, and chunks of a line, in the order in which their sums are added.
constexpr int kFourInOrder[] = {0, 2, 1, 3};

/// Returns an address that GCC knows nothing of, so that it computes those near it from few
/// registers; it would keep each of them otherwise, in memory.
template <class Item> inline const Item *opaque(const Item *from) {
    asm("" : "+r"(from));
    return from;
}

/// Rows at equal distances.
template <class Item, int Count> class EvenRows {
  public:
    EvenRows(const Item *from, int64_t step) : step_(step) {
        for (int each = 0; each < kFours; ++each)
            fours_[each] = opaque(moved(from, 4 * each * step));
    }

    const Item *operator[](int row) const { return moved(fours_[row / 4], row % 4 * step_); }

  private:
    static constexpr int kFours = (Count + 3) / 4;

    static const Item *moved(const Item *from, int64_t bytes) {
        return reinterpret_cast<const Item *>(reinterpret_cast<const char *>(from) + bytes);
    }

    const Item *fours_[kFours];
    int64_t step_;
};

/// Prepared row of activations: numbers in the order of panels, the scale of each block, and the
/// middle times the sum of each chunk's numbers, negative.
template <int Bits> struct StripRow {
    static constexpr int64_t kNumbers = kChunk * 8 / Bits; ///< of a chunk

    StripRow(const BlockTask &task, int64_t row)
        : numbers(task.shared + row * task.shared_row),
          scales(reinterpret_cast<float *>(numbers + padded_depth(task.format, task.depth))),
          starts(reinterpret_cast<int32_t *>(scales + padded_blocks(task.format, task.depth))) {}

    void round(const BlockTask &task, int64_t row) const {
        PanelNumbers<Bits> writer(numbers);
        auto *sums = reinterpret_cast<float *>(starts); // of blocks, which have a chunk at least
        round_blocks(task, row, writer, scales, sums, 1);
        const int64_t chunks = task.blocks * block_bytes(task.format) / kChunk;
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
            int32_t sum = 0;
            for (int64_t each = 0; each < kNumbers; ++each)
                sum += static_cast<int8_t>(numbers[chunk * kNumbers + each]);
            starts[chunk] = -Decoder<Bits>::kMiddle * sum;
        }
    }

    char *numbers;
    float *scales;
    int32_t *starts;
};

/// Rows of the matrix that make a vector of columns: at equal distances if `kWhole`; else the last
/// column of a task is in the place of those behind it.
template <bool kWhole> class StripColumns {
  public:
    StripColumns(const char *from, int64_t step, int64_t columns) : from_(from), step_(step) {
        if constexpr (!kWhole)
            for (int64_t lane = 0; lane < kWidth; ++lane)
                rows_[lane] = from + (lane < columns ? lane : columns - 1) * step;
    }

    /// Loads words of all columns: a vector for each word of a chunk.
    void words(int64_t place, Bytes (&to)[4]) const {
        const EvenRows<char, kWidth> rows(from_ + place, step_);
        const auto at = [&](int lane) {
            if constexpr (kWhole)
                return rows[lane];
            else
                return rows_[lane] + place;
        };
#pragma GCC unroll 4
        for (int lane = 0; lane < 4; ++lane) {
            const auto some = [&](int quad) {
                return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at(lane + 4 * quad)));
            };
            const __m512i two = _mm512_inserti32x4(_mm512_castsi128_si512(some(0)), some(1), 1);
            to[lane] = _mm512_inserti32x4(_mm512_inserti32x4(two, some(2), 2), some(3), 3);
        }
        transpose_words(to);
    }

  private:
    const char *from_;
    int64_t step_;
    const char *rows_[kWhole ? 1 : kWidth];
};

/// Sums of a vector of columns and some rows.
template <int Bits, int Rows, bool kWhole> class StripTile {
  public:
    static void run(const Common<Bits> &common, int64_t column, int64_t row) {
        const BlockTask &task = common.task;
        auto *scales = reinterpret_cast<float *>(task.scratch);
        if (row == 0)
            read_scales(common, column, scales);
        StripTile tile(task, column, row, scales);
        Vector sums[Rows];
        tile.add_all(sums);
        tile.write(sums, column);
    }

  private:
    static constexpr int kParts = 8 / Bits, kVectors = 4 * kParts;
    using Sums = Vector[Rows];

    StripTile(const BlockTask &task, int64_t column, int64_t row, const float *scales)
        : task_(task), given_(task, row), scales_(scales),
          target_(task.target + row * task.target_row),
          columns_(task.matrix.quants + column * task.format.quants_row, task.format.quants_row,
                   task.column_end - column),
          bytes_(block_bytes(task.format)), chunks_(task.blocks * bytes_ / kChunk),
          sign_(task.format.is_signed ? Decoder<Bits>::kMiddle : 0), fetches_(row == 0),
          next_(task.matrix.quants + (column + kWidth) * task.format.quants_row) {}

    /// Reads the scales of all blocks: [block][column].
    static void read_scales(const Common<Bits> &common, int64_t column, float *scales) {
        const BlockTask &task = common.task;
        const ColumnLanes<Bits> lanes(task, common.decoder, column);
        float zeros[kWidth * kWidth];
        for (int64_t block = 0; block < task.blocks; block += kWidth)
            lanes.parameters(block, scales + block * kWidth, zeros);
        const char *next = task.matrix.scales + (column + kWidth) * task.format.scales_row;
        for (int64_t place = 0; place < kWidth * task.format.scales_row; place += kBlockLine)
            __builtin_prefetch(next + place);
    }

    void add_all(Sums &sums) {
        Sums halves[2];
#pragma GCC unroll 1
        for (int each = 0; each < 4; ++each)
            add_line(kFourInOrder[each], halves[each / 2], each % 2 != 0);
        for (int row = 0; row < Rows; ++row)
            sums[row] = halves[0][row] + halves[1][row];
    }

    /// Computes the sums of the chunks of a line, and of the same ones in later fours of lines.
    void add_line(int64_t line, Sums &sums, bool adds) {
        Sums pairs[2];
#pragma GCC unroll 1
        for (int each = 0; each < 4; ++each) {
            Sums some = {};
            for (int64_t chunk = 4 * line + kFourInOrder[each]; chunk < chunks_; chunk += kChunks)
                add_chunk(chunk, some);
            for (int row = 0; row < Rows; ++row)
                pairs[each / 2][row] = each % 2 == 0 ? some[row] : pairs[each / 2][row] + some[row];
        }
        for (int row = 0; row < Rows; ++row) {
            const Vector both = pairs[0][row] + pairs[1][row];
            sums[row] = adds ? sums[row] + both : both;
        }
    }

    void add_chunk(int64_t chunk, Sums &sums) {
        if (fetches_)
            fetch();
        Bytes words[4], some[kVectors];
        columns_.words(chunk * kChunk, words);
#pragma GCC unroll 16
        for (int part = 0; part < kVectors; ++part)
            some[part] = part_of_line<Bits>(words[part / kParts], part % kParts, sign_);
        const int64_t block = chunk * kChunk / bytes_, step = task_.shared_row;
        const Vector scale = load(scales_ + block * kWidth);
        const EvenRows<char, Rows> numbers(given_.numbers + chunk * StripRow<Bits>::kNumbers, step);
        const EvenRows<int32_t, Rows> starts(given_.starts + chunk, step);
        const EvenRows<float, Rows> scales(given_.scales + block, step);
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row) {
            Bytes dots = reinterpret_cast<Bytes>(Ints{} + *starts[row]);
#pragma GCC unroll 16
            for (int vector = 0; vector < kVectors; ++vector) {
                int four;
                __builtin_memcpy(&four, numbers[row] + 4 * vector, sizeof four);
                dots = add_dots(dots, some[vector], reinterpret_cast<Bytes>(Ints{} + four));
            }
            sums[row] += floats_of(reinterpret_cast<Ints>(dots)) * (scale * *scales[row]);
        }
    }

    /// Fetches as many bytes of the next strip as a chunk of all columns has, to the second cache
    /// if the first one has no room for both strips.
    void fetch() {
        const bool is_near = task_.format.quants_row <= kNearRow;
#pragma GCC unroll 4
        for (int64_t line = 0; line < kWidth * kChunk; line += kBlockLine) {
            if (is_near)
                __builtin_prefetch(next_ + line, 0, 3);
            else
                __builtin_prefetch(next_ + line, 0, 2);
        }
        next_ += kWidth * kChunk;
    }

    void write(const Sums &sums, int64_t column) const {
        const int64_t columns = task_.column_end - column;
        const Vector bias =
            task_.bias == nullptr ? Vector{} : load_some(task_.bias + column, columns);
        for (int row = 0; row < Rows; ++row) {
            auto *to = reinterpret_cast<float *>(target_ + row * task_.target_row) + column;
            store_some(to, task_.bias == nullptr ? sums[row] : sums[row] + bias, columns);
        }
    }

    const BlockTask &task_;
    StripRow<Bits> given_;
    const float *scales_; ///< [block][column]
    char *target_;
    StripColumns<kWhole> columns_;
    int64_t bytes_, chunks_; ///< of a block; of a column
    int sign_;
    bool fetches_; ///< whether weights come from memory
    const char *next_;
};

template <int Bits> void multiply_strips(const BlockTask &task) {
    const Common<Bits> common(task);
    for (int64_t column = task.first_column; column < task.column_end; column += kWidth)
        by_few<kBlockFewRows>(task.rows,
                              [&]<int Rows>(std::integral_constant<int, Rows>, int64_t row) {
                                  if (column + kWidth <= task.column_end)
                                      StripTile<Bits, Rows, true>::run(common, column, row);
                                  else
                                      StripTile<Bits, Rows, false>::run(common, column, row);
                              });
}

} // namespace

void round_to_int8_strips(const BlockTask &task, int64_t first_row, int64_t row_end) {
    for (int64_t row = first_row; row < row_end; ++row)
        if (task.format.bits == 8)
            StripRow<8>(task, row).round(task, row);
        else if (task.format.bits == 4)
            StripRow<4>(task, row).round(task, row);
        else
            StripRow<2>(task, row).round(task, row);
}

void multiply_int8_strips(const BlockTask &task) {
    if (task.format.bits == 8)
        multiply_strips<8>(task);
    else if (task.format.bits == 4)
        multiply_strips<4>(task);
    else
        multiply_strips<2>(task);
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
