/// Products of activations rounded to int8. Included by loops that are compiled once for each
/// instruction set.
///
/// A line of quants, one vector, has 8 / bits elements in each byte. Activations lie by lines too:
/// those of the bytes' first elements, then of their second ones and so on, so that a line's
/// elements need no permutation. Behind each line are the sums that the middle of the quants'
/// range makes with it, negative: sums of integers start from them.
#pragma once

#include "block_rounding.hpp"
#include "block_rows.hpp"

#include <array>
#include <utility>

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// True if quants of 8 bits are multiplied as signed numbers: sums of two products of unsigned
/// ones exceed 16 bits.
template <int Bits> constexpr bool kIsCentred = Bits == 8 && !kHasDot;

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

template <int Bits> void round_row(const BlockTask &task, int64_t row) {
    const Int8Row<Bits> to(task, row);
    Lines<Bits> lines(to.lines);
    round_blocks(task, row, lines, to.scales, to.sums, 1);
    lines.finish(reinterpret_cast<const char *>(to.scales));
    const int64_t blocks = padded_blocks(task.format, task.depth);
    for (int64_t block = task.blocks; block < blocks; ++block)
        to.scales[block] = to.sums[block] = 0.0F;
}

/// Adds the dot products of a line's four bytes in each lane to `sums`.
template <int Bits> struct Line {
    static constexpr int kParts = 8 / Bits;

    /// Line of a row of activations, loaded once for some columns.
    struct Given {
        explicit Given(const char *line) : start(once(line + kParts * kLine)) {
#pragma GCC unroll 4
            for (int part = 0; part < kParts; ++part)
                parts[part] = once(line + part * kLine);
        }

        static Bytes once(const char *from) {
            Bytes some = load_bytes(from, kLine);
            asm("" : "+v"(some));
            return some;
        }

        Bytes start, parts[kParts];
    };

    Line(Bytes packed, int sign) {
        if constexpr (Bits == 8) {
            parts[0] = flipped(packed, all_bytes(kIsCentred<8> ? sign ^ 0x80 : sign));
        } else {
            const Bytes mask = all_bytes(Decoder<Bits>::kMask), flip = all_bytes(sign);
            for (int part = 0; part < kParts; ++part)
                parts[part] = part_of(packed, part * Bits, mask, flip);
        }
    }

    Ints dots(const Given &given) const {
        Bytes sums = given.start;
        if constexpr (Bits < 8 && !kHasDot) { // 16 bits hold the products of all parts
            Bytes pairs = pairs_of(parts[0], given.parts[0]);
            for (int part = 1; part < kParts; ++part)
                pairs = add_shorts(pairs, pairs_of(parts[part], given.parts[part]));
            return reinterpret_cast<Ints>(add_pairs(sums, pairs));
        }
        for (int part = 0; part < kParts; ++part) {
            if constexpr (kIsCentred<Bits>)
                sums = add_dots(sums, magnitudes(parts[part]),
                                signed_by(given.parts[part], parts[part]));
            else
                sums = add_dots(sums, parts[part], given.parts[part]);
        }
        return reinterpret_cast<Ints>(sums);
    }

    Bytes parts[kParts];
};

/// Sums of some columns and rows, held in registers.
template <int Bits, int Columns, int Rows> class Int8Tile {
  public:
    static void run(const Common<Bits> &common, int64_t column, int64_t row) {
        const BlockTask &task = common.task;
        Int8Tile tile(common, column, row);
        for (int64_t block = 0; block < task.blocks; block += kWidth)
            tile.add_blocks(block, task.blocks - block < kWidth ? task.blocks - block : kWidth);
        write_sums(task, row, column, tile.sums_);
    }

  private:
    Int8Tile(const Common<Bits> &common, int64_t column, int64_t row)
        : decoder_(common.decoder), strip_(common, column), fetches_(row == 0),
          first_(common.task, row), row_bytes_(common.task.shared_row) {}

    const char *line_of(int row) const { return first_.lines + row * row_bytes_; }

    Vector floats_of_row(const float *from, int row, int64_t block) const {
        return load(reinterpret_cast<const float *>(reinterpret_cast<const char *>(from) +
                                                    row * row_bytes_) +
                    block);
    }

    void add_blocks(int64_t block, int64_t count) {
        Vector scales[Columns], given[Rows];
#pragma GCC unroll 4
        for (int row = 0; row < Rows; ++row)
            given[row] = floats_of_row(first_.scales, row, block);
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column)
            scales[column] = decoder_.floats(strip_.scales[column], block, count);
        if (decoder_.zeros != BlockZeros::kMiddle)
            add_zeros(block, count, scales, given);
        Vector factors[Columns][Rows];
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column)
#pragma GCC unroll 4
            for (int row = 0; row < Rows; ++row)
                factors[column][row] = scales[column] * given[row];
        const int64_t first = block * decoder_.bytes, end = first + count * decoder_.bytes;
        if (fetches_)
            strip_.fetch_scales(block * decoder_.scale_bytes);
        for (int64_t at = first; at < end; at += kLine) {
            if (fetches_)
                strip_.fetch_quants(at);
            add_line(at, end - at, decoder_.block_of((at - first) / kLine), factors);
        }
    }

    void add_line(int64_t at, int64_t count, Ints block_of,
                  const Vector (&factors)[Columns][Rows]) {
        using Given = typename Line<Bits>::Given;
        const std::array<Line<Bits>, Columns> quants =
            [&]<size_t... kColumn>(std::index_sequence<kColumn...>) {
                return std::array<Line<Bits>, Columns>{
                    Line<Bits>(load_bytes(strip_.quants[kColumn] + at, count), decoder_.sign)...};
            }(std::make_index_sequence<Columns>());
#pragma GCC unroll 4
        for (int row = 0; row < Rows; ++row) {
            const Given given(line_of(row) + at / kLine * Int8Row<Bits>::kLineBytes);
#pragma GCC unroll 4
            for (int column = 0; column < Columns; ++column)
                sums_[column][row] +=
                    floats_of(quants[column].dots(given)) * spread(factors[column][row], block_of);
        }
    }

    void add_zeros(int64_t block, int64_t count, const Vector (&scales)[Columns],
                   const Vector (&given)[Rows]) {
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column) {
            const Vector zero = decoder_.zero(strip_.zeros[column], block, count);
#pragma GCC unroll 4
            for (int row = 0; row < Rows; ++row)
                sums_[column][row] +=
                    scales[column] * given[row] * (zero * floats_of_row(first_.sums, row, block));
        }
    }

    Decoder<Bits> decoder_;
    Strip<Bits, Columns> strip_;
    bool fetches_; ///< whether weights come from memory
    Int8Row<Bits> first_;
    int64_t row_bytes_;
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

void multiply_int8(const BlockTask &task) {
    cover<Int8Tile>(task);
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
