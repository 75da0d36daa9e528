/// Products of one or two rows of activations rounded to int8, one column after the other, as the
/// processor's own prefetching follows memory best. That ends with each page, so weights are
/// fetched a page ahead: on an Intel processor, with a file in pages of 4 KiB, a step takes a
/// fifth to a third less. Included by loops that are compiled once for each instruction set.
///
/// Sums have the order of tiles: four lines at a time, then single lines, then lanes.
#pragma once

#include "block_int8.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Columns without zero points; scales are halves if `kHalf`.
template <int Bits, int Rows, bool kHalf> class SingleColumns {
  public:
    explicit SingleColumns(const Common<Bits> &common)
        : common_(common), task_(common.task), decoder_(common.decoder), given_(task_, 0),
          row_bytes_(task_.shared_row), fours_(task_.blocks * decoder_.bytes / kFourLines),
          rest_(task_.blocks * decoder_.bytes % kFourLines), blocks_(kFourLines / decoder_.bytes),
          block_of_(decoder_.block_of_chunk()) {}

    /// Computes columns, whose number a strip divides.
    void run(int64_t first, int64_t end) const {
        const int64_t quants_row = task_.format.quants_row, scales_row = task_.format.scales_row;
        const char *quants = task_.matrix.quants + first * quants_row;
        const char *scales = task_.matrix.scales + first * scales_row;
        for (int64_t column = first; column < end; column += kStripColumns) {
            Sums sums[kStripColumns];
#pragma GCC unroll 1
            for (int each = 0; each < kStripColumns; ++each) {
                add_fours(quants, scales, sums[each]);
                quants += quants_row;
                scales += scales_row;
            }
            if (rest_ > 0)
                add_rest(column, sums);
            write_sums(task_, 0, column, sums, add_chunks<Rows * kStripColumns>);
        }
    }

  private:
    using Sums = Vector[Rows];
    static constexpr int kParts = Int8Row<Bits>::kParts, kFourParts = 4 * kParts;
    static constexpr int64_t kLineBytes = Int8Row<Bits>::kLineBytes;

    static Vector scales_of(const char *from, int64_t count) {
        return kHalf ? load_halves(from, count)
                     : load_some(reinterpret_cast<const float *>(from), count);
    }

    /// Computes the sums of a column's fours of lines.
    [[gnu::always_inline]] void add_fours(const char *quants, const char *scales, Sums &to) const {
        constexpr int64_t kScale = kHalf ? 2 : 4;
        const char *given = given_.lines;
        Sums sums = {};
#pragma GCC unroll 1
        for (int64_t four = 0; four < fours_; ++four) {
            __builtin_prefetch(scales + kPageAhead, 0, 3);
            add_four_lines(quants, given, spread(scales_of(scales, blocks_), block_of_), sums);
            quants += kFourLines;
            scales += blocks_ * kScale;
            given += 4 * kLineBytes;
        }
        for (int row = 0; row < Rows; ++row)
            to[row] = sums[row];
    }

    [[gnu::always_inline]] void add_four_lines(const char *quants, const char *given,
                                               Vector factors, Sums &sums) const {
        Bytes packed[4];
#pragma GCC unroll 4
        for (int line = 0; line < 4; ++line) {
            __builtin_prefetch(quants + line * kLine + kPageAhead, 0, 3);
            packed[line] = load_bytes(quants + line * kLine, kLine);
        }
        transpose_words(packed);
        LaneDots<Bits> dots[Rows];
#pragma GCC unroll 16
        for (int part = 0; part < kFourParts; ++part) {
            const Bytes some =
                part_of_line<Bits>(packed[part / kParts], part % kParts, decoder_.sign);
#pragma GCC unroll 2
            for (int row = 0; row < Rows; ++row)
                dots[row].add(some, load_bytes(given + row * row_bytes_ + part * kLine, kLine));
        }
#pragma GCC unroll 2
        for (int row = 0; row < Rows; ++row) {
            const char *behind = given + row * row_bytes_ + kFourParts * kLine;
            sums[row] += floats_of(dots[row].sums_from(load_bytes(behind, kLine))) *
                         (factors * load(reinterpret_cast<const float *>(behind + kLine)));
        }
    }

    /// Adds the products of lines behind the fours.
    [[gnu::always_inline]] void add_rest(int64_t column, Sums (&sums)[kStripColumns]) const {
        const Strip<Bits, kStripColumns> strip(common_, column);
        if (kHasHalfLines && rest_ <= kLine / 2)
            return add_half_lines(strip.quants, strip.scales, sums);
        for (int64_t at = 0; at < rest_; at += kLine)
            for (int each = 0; each < kStripColumns; ++each)
                add_line(strip.quants[each], strip.scales[each], at, sums[each]);
    }

    /// Returns the activations of a line behind the fours.
    const char *line_of(int row, int64_t at) const {
        return given_.lines + row * row_bytes_ + (4 * fours_ + at / kLine) * kLineBytes;
    }

    /// Returns the scales of the blocks behind the fours, of a column times those of a row.
    Vector factors_of(const char *scales, int row) const {
        const char *given = reinterpret_cast<const char *>(given_.scales + fours_ * blocks_);
        return scales_of(scales + fours_ * blocks_ * decoder_.scale_bytes, rest_ / decoder_.bytes) *
               load(reinterpret_cast<const float *>(given + row * row_bytes_));
    }

    /// Adds the products of half lines behind the fours, two columns in a vector.
    [[gnu::always_inline]] void add_half_lines(const char *const (&quants)[kStripColumns],
                                               const char *const (&scales)[kStripColumns],
                                               Sums (&sums)[kStripColumns]) const {
        if constexpr (kHasHalfLines) {
            const HalfLines<Bits> halves(quants, fours_ * kFourLines, rest_, decoder_.sign);
            const Ints block_of = decoder_.block_of(0);
#pragma GCC unroll 2
            for (int row = 0; row < Rows; ++row) {
                const Vector dots = halves.dots(line_of(row, 0));
#pragma GCC unroll 4
                for (int each = 0; each < kStripColumns; ++each)
                    sums[each][row] =
                        halves.added(sums[each][row], dots,
                                     spread(factors_of(scales[each], row), block_of), each, 0);
            }
        }
    }

    /// Adds the products of a line, `at` bytes behind the fours.
    [[gnu::always_inline]] void add_line(const char *quants, const char *scales, int64_t at,
                                         Sums &sums) const {
        const int line = static_cast<int>(at / kLine);
        const Bytes packed = load_bytes(quants + fours_ * kFourLines + at, rest_ - at);
        const Ints kept = lanes_of_line(line), block_of = decoder_.block_of(line);
#pragma GCC unroll 2
        for (int row = 0; row < Rows; ++row) {
            const char *given = line_of(row, at);
            LaneDots<Bits> dots;
#pragma GCC unroll 4
            for (int part = 0; part < kParts; ++part)
                dots.add(part_of_line<Bits>(packed, part, decoder_.sign),
                         load_bytes(given + part * kLine, kLine));
            const Ints all = dots.sums_from(load_bytes(given + kParts * kLine, kLine));
            sums[row] += floats_of(chunk_sums(all)) *
                         (kept ? spread(factors_of(scales, row), block_of) : Vector{});
        }
    }

    const Common<Bits> &common_;
    const BlockTask &task_;
    Decoder<Bits> decoder_;
    Int8Row<Bits> given_;
    int64_t row_bytes_;
    int64_t fours_, rest_; ///< fours of lines of a column, and the bytes behind them
    int64_t blocks_;       ///< of four lines
    Ints block_of_;
};

/// Returns whether columns are computed one after the other: whole chunks without zero points.
/// Sixteen registers hold what a step needs of fewer than 8 bits, if no line is behind the fours.
template <int Bits> bool are_single(const BlockTask &task, const Decoder<Bits> &decoder) {
    if (kLine < kBlockLine && (Bits == 8 || task.blocks * decoder.bytes % kFourLines != 0))
        return false;
    return task.rows <= kSingleRows && decoder.bytes >= kChunk && decoder.bytes <= kFourLines &&
           task.blocks * decoder.bytes >= kFourLines && !decoder.is_by_row &&
           decoder.zeros == BlockZeros::kMiddle;
}

template <int Bits> void multiply_few(const BlockTask &task) {
    const Common<Bits> common(task);
    if (!are_single(task, common.decoder))
        return cover<Int8Tile, kBlockFewRows, Bits>(task);
    const int64_t rest = (task.column_end - task.first_column) % kStripColumns;
    const int64_t end = task.column_end - rest;
    by_few<kSingleRows>(task.rows, [&]<int Rows>(std::integral_constant<int, Rows>, int64_t row) {
        if (common.decoder.is_half)
            SingleColumns<Bits, Rows, true>(common).run(task.first_column, end);
        else
            SingleColumns<Bits, Rows, false>(common).run(task.first_column, end);
        for (int64_t column = end; column < task.column_end; ++column)
            Int8Tile<Bits, 1, Rows>::run(common, column, row);
    });
}

} // namespace

void multiply_int8(const BlockTask &task) {
    if (task.format.bits == 8)
        multiply_few<8>(task);
    else if (task.format.bits == 4)
        multiply_few<4>(task);
    else
        multiply_few<2>(task);
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
