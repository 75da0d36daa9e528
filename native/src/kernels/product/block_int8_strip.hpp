/// Products of some rows of activations rounded to int8: quants are unpacked in registers, for up
/// to eight rows at once. Included by loops of an instruction set with dot products of bytes and
/// vectors of 64 bytes.
///
/// A strip is a vector of columns, whose quants come 16 bytes of each at a time, a chunk:
/// transposed, a lane has a word of a column. Columns read so are scattered in memory, which is
/// slower than one after the other; it pays for as many rows as compute longer than memory takes.
///
/// Sums have the order of tiles, in which a lane has every 16th chunk of a column, the chunks of a
/// line of 64 bytes are added, and then lines: a row has the same bits among few rows and among
/// more.
#pragma once

#include "block_columns.hpp"
#include "block_int8_panel.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int64_t kChunks = 16;   ///< whose sums are added at the end
constexpr int64_t kNearRow = 384; ///< bytes of a column at most, if two strips fit the first cache
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

/// Prepared activations of all rows of a task, side by side: a row is at a constant distance from
/// the one before, so that loops need no address for each. Numbers in the order of panels, those of
/// a chunk together: [chunk][row]; scales: [block][row]; and the middle times the sum of each
/// chunk's numbers, negative: [chunk][row].
template <int Bits> class StripRows {
  public:
    static constexpr int64_t kNumbers = kChunk * 8 / Bits; ///< of a chunk

    explicit StripRows(const BlockTask &task)
        : rows_(task.rows), numbers_(task.shared),
          scales_(
              reinterpret_cast<float *>(numbers_ + rows_ * padded_depth(task.format, task.depth))),
          starts_(reinterpret_cast<int32_t *>(scales_ +
                                              rows_ * padded_blocks(task.format, task.depth))) {}

    char *numbers(int64_t chunk, int64_t row) const {
        return numbers_ + (chunk * rows_ + row) * kNumbers;
    }
    float *scales(int64_t block, int64_t row) const { return scales_ + block * rows_ + row; }
    int32_t *starts(int64_t chunk, int64_t row) const { return starts_ + chunk * rows_ + row; }

    void round(const BlockTask &task, int64_t row) const {
        Numbers writer(*this, row);
        round_blocks(task, row, writer, scales(0, row), nullptr, rows_);
    }

  private:
    /// Writer of a row.
    class Numbers {
      public:
        Numbers(const StripRows &to, int64_t row)
            : numbers_(to.numbers(0, row)), starts_(to.starts(0, row)), rows_(to.rows_) {}

        void put(Ints x) {
            char some[kWidth];
            PanelNumbers<Bits>(some).put(x);
            sum_ += x;
            __builtin_memcpy(numbers_ + count_, some, kWidth);
            count_ += kWidth;
            if (count_ < kNumbers)
                return;
            *starts_ = -Decoder<Bits>::kMiddle * sum_of(sum_);
            numbers_ += rows_ * kNumbers;
            starts_ += rows_;
            sum_ = Ints{};
            count_ = 0;
        }

      private:
        char *numbers_;
        int32_t *starts_;
        int64_t rows_, count_ = 0;
        Ints sum_{};
    };

    int64_t rows_;
    char *numbers_;
    float *scales_;
    int32_t *starts_;
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

/// Adds dot products of four bytes in each lane, `integers` the same in all. GCC would load these
/// to a register first.
inline void add_same_dots(Bytes &sums, Bytes naturals, const char *integers) {
    typedef int Word __attribute__((aligned(1), may_alias));
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(sums)
        : "v"(naturals), "m"(*reinterpret_cast<const Word *>(integers)));
}

/// Sums of a vector of columns and some rows.
template <int Bits, int Rows, bool kWhole> class StripTile {
  public:
    static void run(const Common<Bits> &common, int64_t column, int64_t row) {
        const BlockTask &task = common.task;
        auto *scales = reinterpret_cast<float *>(task.scratch);
        if (row == 0)
            read_scales(common, column, scales);
        StripTile(common, column, row, scales).run();
    }

  private:
    static constexpr int kParts = 8 / Bits, kVectors = 4 * kParts;
    using Sums = Vector[Rows];

    StripTile(const Common<Bits> &common, int64_t column, int64_t row, const float *scales)
        : task_(common.task), given_(task_), scales_(scales), row_(row), column_(column),
          columns_(task_.matrix.quants + column * task_.format.quants_row, task_.format.quants_row,
                   task_.column_end - column),
          chunks_(task_.blocks * common.decoder.bytes / kChunk),
          block_shift_(common.decoder.shift - 2), sign_(common.decoder.sign), fetches_(row == 0),
          next_(task_.matrix.quants + (column + kWidth) * task_.format.quants_row) {}

    /// Reads the scales of all blocks: [block][column].
    static void read_scales(const Common<Bits> &common, int64_t column, float *scales) {
        const BlockTask &task = common.task;
        const ColumnLanes<Bits> lanes(task, common.decoder, column);
        for (int64_t block = 0; block < task.blocks; block += kWidth)
            lanes.parameters(block, scales + block * kWidth, nullptr);
        const char *next = task.matrix.scales + (column + kWidth) * task.format.scales_row;
        for (int64_t place = 0; place < kWidth * task.format.scales_row; place += kBlockLine)
            __builtin_prefetch(next + place);
    }

    void run() {
        Sums totals;
        for (int line = 0; line < 4; ++line) {
            Sums sums;
            add_line(line, sums);
            for (int row = 0; row < Rows; ++row)
                totals[row] = line == 0 ? sums[row] : totals[row] + sums[row];
        }
        write(totals);
    }

    /// Computes the sums of the chunks of a line, and of the same ones in later fours of lines.
    void add_line(int line, Sums &sums) {
#pragma GCC unroll 1
        for (int each = 0; each < 4; ++each) {
            Sums some = {};
#pragma GCC unroll 1
            for (int64_t chunk = 4 * line + each; chunk < chunks_; chunk += kChunks)
                add_chunk(chunk, some);
            for (int row = 0; row < Rows; ++row)
                sums[row] = each == 0 ? some[row] : sums[row] + some[row];
        }
    }

    /// Adds the products of a chunk: a vector of its quants after the other for all rows, whose
    /// sums do not wait for one another.
    void add_chunk(int64_t chunk, Sums &sums) {
        if (fetches_)
            fetch();
        Bytes words[4], dots[Rows];
        columns_.words(chunk * kChunk, words);
        const int64_t block = chunk >> block_shift_;
        const char *numbers = given_.numbers(chunk, row_);
        const int32_t *starts = given_.starts(chunk, row_);
        const float *scales = given_.scales(block, row_);
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row)
            dots[row] = reinterpret_cast<Bytes>(Ints{} + starts[row]);
#pragma GCC unroll 16
        for (int vector = 0; vector < kVectors; ++vector) {
            const Bytes some = part_of_line<Bits>(words[vector / kParts], vector % kParts, sign_);
#pragma GCC unroll 8
            for (int row = 0; row < Rows; ++row)
                add_same_dots(dots[row], some,
                              numbers + row * StripRows<Bits>::kNumbers + 4 * vector);
        }
        const Vector scale = load(scales_ + block * kWidth);
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row)
            sums[row] += floats_of(reinterpret_cast<Ints>(dots[row])) * (scale * scales[row]);
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

    void write(const Sums &sums) const {
        const int64_t columns = task_.column_end - column_;
        const Vector bias =
            task_.bias == nullptr ? Vector{} : load_some(task_.bias + column_, columns);
        for (int row = 0; row < Rows; ++row) {
            auto *to = reinterpret_cast<float *>(task_.target + (row_ + row) * task_.target_row);
            store_some(to + column_, task_.bias == nullptr ? sums[row] : sums[row] + bias, columns);
        }
    }

    const BlockTask &task_;
    StripRows<Bits> given_;
    const float *scales_; ///< [block][column]
    int64_t row_, column_;
    StripColumns<kWhole> columns_;
    int64_t chunks_;  ///< of a column
    int block_shift_; ///< a block has 2^block_shift_ chunks
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
            StripRows<8>(task).round(task, row);
        else if (task.format.bits == 4)
            StripRows<4>(task).round(task, row);
        else
            StripRows<2>(task).round(task, row);
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
