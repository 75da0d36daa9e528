/// Products of activations rounded to int8. Included by loops that are compiled once for each
/// instruction set.
///
/// A line of quants, one vector, has 8 / bits elements in each byte. Activations lie by lines too:
/// those of the bytes' first elements, then of their second ones and so on, so that a line's
/// elements need no permutation. Behind each line are the sums that the middle of the quants'
/// range makes with it, negative: sums of integers start from them.
///
/// Four lines are multiplied together where a block has 16 bytes at least: their words are
/// transposed, so that a lane has the dot product of 16 bytes, and a fourth as many sums become
/// floats. Activations of four lines lie in the order of the transposed words; behind them are the
/// sums to start from and the scale of each lane. In lines behind the last four, a lane has that
/// dot product too, so that sums have one order whatever unpacks the quants.
#pragma once

#include "block_int8_lanes.hpp"
#include "block_rounding.hpp"

#include <array>
#include <utility>

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Prepared row of activations.
template <int Bits> struct Int8Row {
    static constexpr int kParts = 8 / Bits;
    static constexpr int64_t kLineBytes = (kParts + 1) * kLine;

    Int8Row(const BlockTask &task, int64_t row)
        : lines(task.shared + row * task.shared_row),
          scales(reinterpret_cast<float *>(lines + padded_depth(task.format, task.depth) /
                                                       (kLine * kParts) * kLineBytes)),
          sums(scales + padded_blocks(task.format, task.depth)) {}

    char *lines;
    float *scales, *sums;
};

/// Returns the bytes of a row of quants that four lines at a time take.
template <int Bits> int64_t bytes_by_fours(const Decoder<Bits> &decoder, int64_t blocks) {
    return decoder.bytes < 16 ? 0 : blocks * decoder.bytes / kFourLines * kFourLines;
}

/// Writer of integers to lines.
template <int Bits> class Lines {
  public:
    explicit Lines(char *to) : to_(to) {}

    void put(Ints numbers) {
        store_bytes(numbers_ + count_, numbers);
        count_ += kWidth;
        if (count_ == kElements)
            end_line();
    }

    /// Fills lines with zeros up to `end`.
    void finish(const char *end) {
        while (to_ < end)
            put(Ints{});
    }

  private:
    static constexpr int kParts = 8 / Bits;
    static constexpr int64_t kElements = kParts * kLine;

    void end_line() {
        Bytes sums{};
        for (int part = 0; part < kParts; ++part) {
            for (int64_t byte = 0; byte < kLine; ++byte)
                to_[byte] = numbers_[byte * kParts + part];
            if constexpr (!kIsCentred<Bits>)
                sums = add_dots(sums, all_bytes(Decoder<Bits>::kMiddle), load_bytes(to_, kLine));
            to_ += kLine;
        }
        const Ints negative = -reinterpret_cast<Ints>(sums);
        __builtin_memcpy(to_, &negative, sizeof negative);
        to_ += kLine;
        count_ = 0;
    }

    char *to_;
    char numbers_[kElements];
    int64_t count_ = 0;
};

/// Puts four lines of activations in the order of transposed words.
template <int Bits> void order_four_lines(char *lines, Vector scales) {
    constexpr int kParts = Int8Row<Bits>::kParts;
    Bytes parts[kParts + 1][4]; // the last for sums to start from
    for (int part = 0; part <= kParts; ++part) {
        for (int line = 0; line < 4; ++line)
            parts[part][line] =
                load_bytes(lines + line * Int8Row<Bits>::kLineBytes + part * kLine, kLine);
        transpose_words(parts[part]);
    }
    Ints start{};
    for (int word = 0; word < 4; ++word) {
        for (int part = 0; part < kParts; ++part, lines += kLine)
            __builtin_memcpy(lines, &parts[part][word], kLine);
        start += reinterpret_cast<Ints>(parts[kParts][word]);
    }
    __builtin_memcpy(lines, &start, kLine);
    __builtin_memcpy(lines + kLine, &scales, kLine);
}

template <int Bits> void order_lines(const BlockTask &task, const Int8Row<Bits> &row) {
    const Decoder<Bits> decoder(task.format);
    const int64_t end = bytes_by_fours(decoder, task.blocks);
    for (int64_t at = 0; at < end; at += kFourLines)
        order_four_lines<Bits>(
            row.lines + at / kLine * Int8Row<Bits>::kLineBytes,
            spread(load(row.scales + at / decoder.bytes), decoder.block_of_chunk()));
}

template <int Bits> void round_row(const BlockTask &task, int64_t row) {
    const Int8Row<Bits> to(task, row);
    Lines<Bits> lines(to.lines);
    round_blocks(task, row, lines, to.scales, to.sums, 1);
    lines.finish(reinterpret_cast<const char *>(to.scales));
    const int64_t blocks = padded_blocks(task.format, task.depth);
    for (int64_t block = task.blocks; block < blocks; ++block)
        to.scales[block] = to.sums[block] = 0.0F;
    order_lines(task, to);
}

/// Sums of some columns and rows, held in registers.
template <int Bits, int Columns, int Rows> class Int8Tile {
  public:
    static constexpr bool kIsSingle = Rows <= kSingleRows; ///< if columns are long

    static void run(const Common<Bits> &common, int64_t column, int64_t row) {
        const BlockTask &task = common.task;
        Int8Tile tile(common, column, row);
        for (int64_t block = 0; block < task.blocks; block += kWidth)
            tile.add_blocks(block, task.blocks - block < kWidth ? task.blocks - block : kWidth);
        write_sums(task, row, column, tile.sums_, add_chunks<Rows * Columns>);
    }

  private:
    static constexpr int kFourParts = 4 * Int8Row<Bits>::kParts;
    static constexpr bool kHasHalves = kHasHalfLines && Columns == 4 && Rows <= 2;

    Int8Tile(const Common<Bits> &common, int64_t column, int64_t row)
        : decoder_(common.decoder), strip_(common, column),
          fetches_(row == 0 && (Columns > 1 || !kIsSingle)), first_(common.task, row),
          row_bytes_(common.task.shared_row),
          by_fours_(bytes_by_fours(decoder_, common.task.blocks)) {}

    const char *line_of(int row) const { return first_.lines + row * row_bytes_; }

    Vector floats_of_row(const float *from, int row, int64_t block) const {
        return load(reinterpret_cast<const float *>(reinterpret_cast<const char *>(from) +
                                                    row * row_bytes_) +
                    block);
    }

    void add_blocks(int64_t block, int64_t count) {
        Vector scales[Columns];
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column)
            scales[column] = decoder_.floats(strip_.scales[column], block, count);
        if (decoder_.zeros != BlockZeros::kMiddle)
            add_zeros(block, count, scales);
        const int64_t first = block * decoder_.bytes, end = first + count * decoder_.bytes;
        if (fetches_)
            strip_.fetch_scales(block * decoder_.scale_bytes);
        int64_t at = first;
        for (; at < by_fours_ && at < end; at += kFourLines)
            add_four_lines(
                at, decoder_.block_of_chunk() + static_cast<int>((at - first) / decoder_.bytes),
                scales);
        if (kHasHalves && at < end && end - at <= kLine / 2 && decoder_.bytes >= kChunk)
            add_half_lines(block, at, end - at, scales);
        else if (at < end)
            add_lines(block, at, end, scales);
    }

    /// Adds the products of four lines: for many rows a row after the other, with all quants
    /// unpacked, else as they are unpacked.
    void add_four_lines(int64_t at, Ints block_of, const Vector (&scales)[Columns]) {
        const int64_t line = at / kLine * Int8Row<Bits>::kLineBytes;
        Bytes packed[Columns][4];
        Vector factors[Columns];
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column) {
#pragma GCC unroll 4
            for (int each = 0; each < 4; ++each) {
                const char *from = strip_.quants[column] + at + each * kLine;
                if (fetches_)
                    __builtin_prefetch(from + strip_.ahead.quants);
                packed[column][each] = load_bytes(from, kLine);
            }
            transpose_words(packed[column]);
            factors[column] = spread(scales[column], block_of);
        }
        if constexpr (Rows > 2)
            add_by_rows(packed, line, factors);
        else
            add_by_words(packed, line, factors);
    }

    void add_by_rows(const Bytes (&packed)[Columns][4], int64_t line,
                     const Vector (&factors)[Columns]) {
        Bytes some[Columns][kFourParts];
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column)
#pragma GCC unroll 16
            for (int part = 0; part < kFourParts; ++part)
                some[column][part] = unpacked(packed[column], part);
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row) {
            LaneDots<Bits> dots[Columns];
#pragma GCC unroll 16
            for (int part = 0; part < kFourParts; ++part) {
                const Bytes given = once(line_of(row) + line + part * kLine);
#pragma GCC unroll 4
                for (int column = 0; column < Columns; ++column)
                    dots[column].add(some[column][part], given);
            }
            add_dots_of(row, dots, line, factors);
        }
    }

    void add_by_words(const Bytes (&packed)[Columns][4], int64_t line,
                      const Vector (&factors)[Columns]) {
        LaneDots<Bits> dots[Rows][Columns];
#pragma GCC unroll 16
        for (int part = 0; part < kFourParts; ++part) {
            Bytes given[Rows];
            for (int row = 0; row < Rows; ++row)
                given[row] = once(line_of(row) + line + part * kLine);
#pragma GCC unroll 4
            for (int column = 0; column < Columns; ++column) {
                const Bytes some = unpacked(packed[column], part);
                for (int row = 0; row < Rows; ++row)
                    dots[row][column].add(some, given[row]);
            }
        }
        for (int row = 0; row < Rows; ++row)
            add_dots_of(row, dots[row], line, factors);
    }

    /// Returns elements of transposed lines: those of a word's first bits, its next ones and so on.
    Bytes unpacked(const Bytes (&packed)[4], int part) const {
        constexpr int kParts = Int8Row<Bits>::kParts;
        return part_of_line<Bits>(packed[part / kParts], part % kParts, decoder_.sign);
    }

    void add_dots_of(int row, const LaneDots<Bits> (&dots)[Columns], int64_t line,
                     const Vector (&factors)[Columns]) {
        const char *behind = line_of(row) + line + kFourParts * kLine;
        const Bytes start = once(behind);
        const Vector scale = loaded_once(reinterpret_cast<const float *>(behind + kLine));
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column)
            sums_[column][row] +=
                floats_of(dots[column].sums_from(start)) * (factors[column] * scale);
    }

    /// Adds the products of lines of which half is empty, two columns in a vector.
    void add_half_lines(int64_t block, int64_t at, int64_t count, const Vector (&scales)[Columns]) {
        if constexpr (kHasHalves) {
            if (fetches_)
                strip_.fetch_quants(at);
            const HalfLines<Bits> halves(strip_.quants, at, count, decoder_.sign);
            const Ints block_of = decoder_.block_of((at - block * decoder_.bytes) / kLine);
#pragma GCC unroll 2
            for (int row = 0; row < Rows; ++row) {
                const Vector given = floats_of_row(first_.scales, row, block);
                const Vector dots =
                    halves.dots(line_of(row) + at / kLine * Int8Row<Bits>::kLineBytes);
#pragma GCC unroll 4
                for (int column = 0; column < Columns; ++column)
                    sums_[column][row] = halves.added(
                        sums_[column][row], dots, spread(scales[column] * given, block_of), column,
                        static_cast<int>((at - by_fours_) / kLine));
            }
        }
    }

    /// Adds the products of lines behind the last four.
    void add_lines(int64_t block, int64_t at, int64_t end, const Vector (&scales)[Columns]) {
        const int64_t first = block * decoder_.bytes;
        Vector factors[Columns][Rows];
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row) {
            const Vector given = floats_of_row(first_.scales, row, block);
#pragma GCC unroll 4
            for (int column = 0; column < Columns; ++column)
                factors[column][row] = scales[column] * given;
        }
        for (; at < end; at += kLine) {
            if (fetches_)
                strip_.fetch_quants(at);
            add_line(at, end - at, decoder_.block_of((at - first) / kLine), factors);
        }
    }

    /// Returns the integers of a line as those of four transposed ones have them: a lane has the
    /// sum of 16 bytes, where blocks have as many.
    Ints by_chunks(Ints dots) const { return decoder_.bytes < kChunk ? dots : chunk_sums(dots); }

    /// Returns the lanes of a line's factors that count, likewise: one of each 16 bytes.
    Ints kept_lanes(int64_t at) const {
        const int line = static_cast<int>((at - by_fours_) / kLine);
        return decoder_.bytes < kChunk ? Ints{} == 0 : lanes_of_line(line);
    }

    /// Adds the products of a line, a row after the other: other sums have no room in registers.
    void add_line(int64_t at, int64_t count, Ints block_of,
                  const Vector (&factors)[Columns][Rows]) {
        constexpr int kParts = Int8Row<Bits>::kParts;
        const int64_t line = at / kLine * Int8Row<Bits>::kLineBytes;
        const Ints kept = kept_lanes(at);
        Bytes some[Columns][kParts];
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column) {
            const Bytes packed = load_bytes(strip_.quants[column] + at, count);
#pragma GCC unroll 4
            for (int part = 0; part < kParts; ++part)
                some[column][part] = part_of_line<Bits>(packed, part, decoder_.sign);
        }
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row) {
            Bytes given[kParts + 1];
#pragma GCC unroll 5
            for (int part = 0; part <= kParts; ++part)
                given[part] = once(line_of(row) + line + part * kLine);
#pragma GCC unroll 4
            for (int column = 0; column < Columns; ++column) {
                LaneDots<Bits> dots;
#pragma GCC unroll 4
                for (int part = 0; part < kParts; ++part)
                    dots.add(some[column][part], given[part]);
                sums_[column][row] += floats_of(by_chunks(dots.sums_from(given[kParts]))) *
                                      (kept ? spread(factors[column][row], block_of) : Vector{});
            }
        }
    }

    void add_zeros(int64_t block, int64_t count, const Vector (&scales)[Columns]) {
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column) {
            const Vector zero = decoder_.zero(strip_.zeros[column], block, count);
#pragma GCC unroll 8
            for (int row = 0; row < Rows; ++row)
                sums_[column][row] += scales[column] * floats_of_row(first_.scales, row, block) *
                                      (zero * floats_of_row(first_.sums, row, block));
        }
    }

    Decoder<Bits> decoder_;
    Strip<Bits, Columns> strip_;
    bool fetches_; ///< whether weights come from memory
    Int8Row<Bits> first_;
    int64_t row_bytes_, by_fours_;
    Vector sums_[Columns][Rows] = {};
};

} // namespace

void round_to_int8(const BlockTask &task, int64_t first_row, int64_t row_end) {
    for (int64_t row = first_row; row < row_end; ++row)
        if (task.format.bits == 8)
            round_row<8>(task, row);
        else if (task.format.bits == 4)
            round_row<4>(task, row);
        else
            round_row<2>(task, row);
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
