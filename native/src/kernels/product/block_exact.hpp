/// Products of float32 activations. Included by loops that are compiled once for each instruction
/// set.
///
/// A line of quants, one vector, has 32 / bits elements in each lane. Activations lie by lines
/// too: those of the lanes' first elements, then of their second ones and so on.
#pragma once

#include "block_rows.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Prepared row of activations.
template <int Bits> struct ExactRow {
    static constexpr int kParts = 32 / Bits;
    static constexpr int64_t kElements = kParts * kWidth; ///< of a line

    ExactRow(const BlockTask &task, int64_t row)
        : lines(reinterpret_cast<float *>(task.shared + row * task.shared_row)),
          sums(lines + padded_depth(task.format, task.depth)) {}

    float *lines, *sums;
};

template <int Bits> void separate_row(const BlockTask &task, int64_t row) {
    using Row = ExactRow<Bits>;
    const auto *from = reinterpret_cast<const float *>(task.source + row * task.source_row);
    const Row to(task, row);
    const int64_t padded = padded_depth(task.format, task.depth);
    const int64_t whole = task.depth / Row::kElements * Row::kElements;
    for (int64_t line = 0; line < whole; line += Row::kElements)
        for (int part = 0; part < Row::kParts; ++part)
            for (int lane = 0; lane < kWidth; ++lane)
                to.lines[line + part * kWidth + lane] = from[line + lane * Row::kParts + part];
    for (int64_t index = whole; index < padded; ++index) {
        const int64_t lane = index % Row::kElements / Row::kParts, part = index % Row::kParts;
        to.lines[index / Row::kElements * Row::kElements + part * kWidth + lane] =
            index < task.depth ? from[index] : 0.0F;
    }
    const int64_t blocks = padded_blocks(task.format, task.depth), length = task.format.block;
    for (int64_t block = 0; block < blocks; ++block) {
        Vector sums{};
        const int64_t left = task.depth - block * length, count = left < length ? left : length;
        for (int64_t index = 0; index < count; index += kWidth)
            sums += load_some(from + block * length + index, count - index);
        to.sums[block] = sum_of(sums);
    }
}

/// Elements of a line as floats, less the middle.
template <int Bits> struct Elements {
    Elements(Bytes packed, int sign)
        : packed(reinterpret_cast<Ints>(flipped(packed, all_bytes(sign * kRepeats)))) {}

    static Vector part_of(Ints packed, int part) {
#if TIGHTSHIP_VECTOR_BYTES == 64
        if constexpr (Bits < 8) { // a permutation looks at the last four bits of an index
            const Ints lane = lane_numbers() & Decoder<Bits>::kMask;
            return spread(floats_of(lane - Decoder<Bits>::kMiddle), packed >> (part * Bits));
        }
#endif
        if constexpr (Bits == 8)
            return floats_of((packed << (24 - part * Bits)) >> 24);
        return floats_of(((packed >> (part * Bits)) & Decoder<Bits>::kMask) -
                         Decoder<Bits>::kMiddle);
    }

    /// Repeats a quant's bits in a byte.
    static constexpr int kRepeats = Bits == 8 ? 1 : Bits == 4 ? 0x11 : 0x55;

    Ints packed;
};

/// Sums of some columns and rows, held in registers.
template <int Bits, int Columns, int Rows> class ExactTile {
  public:
    static constexpr bool kIsSingle = false; ///< its one sum would wait for each addition

    static void run(const Common<Bits> &common, int64_t column, int64_t row) {
        const BlockTask &task = common.task;
        ExactTile tile(common, column, row);
        for (int64_t block = 0; block < task.blocks; block += kWidth)
            tile.add_blocks(block, task.blocks - block < kWidth ? task.blocks - block : kWidth);
        write_sums(task, row, column, tile.sums_);
    }

  private:
    ExactTile(const Common<Bits> &common, int64_t column, int64_t row)
        : decoder_(common.decoder), strip_(common, column), fetches_(row == 0),
          first_(common.task, row), row_floats_(common.task.shared_row / 4),
          // Bytes of 8 bits are read as signed numbers.
          sign_(Bits == 8 ? decoder_.sign ^ Decoder<Bits>::kMiddle : decoder_.sign) {}

    void add_blocks(int64_t block, int64_t count) {
        Vector scales[Columns];
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column) {
            scales[column] = decoder_.floats(strip_.scales[column], block, count);
            if (decoder_.zeros != BlockZeros::kMiddle) {
                const Vector zero =
                    scales[column] * decoder_.zero(strip_.zeros[column], block, count);
#pragma GCC unroll 4
                for (int row = 0; row < Rows; ++row)
                    sums_[column][row] += zero * load(first_.sums + row * row_floats_ + block);
            }
        }
        const int64_t first = block * decoder_.bytes, end = first + count * decoder_.bytes;
        if (fetches_)
            strip_.fetch_scales(block * decoder_.scale_bytes);
        for (int64_t at = first; at < end; at += kLine) {
            if (fetches_)
                strip_.fetch_quants(at);
            add_line(at, end - at, decoder_.block_of((at - first) / kLine), scales);
        }
    }

    /// Adds a line's products. Each sum has one order of additions, whatever the tile.
    void add_line(int64_t at, int64_t count, Ints block_of, const Vector (&scales)[Columns]) {
        const float *line = first_.lines + at / kLine * ExactRow<Bits>::kElements;
        const float *given[Rows];
#pragma GCC unroll 4
        for (int row = 0; row < Rows; ++row) {
            given[row] = line + row * row_floats_;
            asm("" : "+r"(given[row])); // one address a row, not one for each of its parts
        }
        Ints packed[Columns];
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column)
            packed[column] =
                Elements<Bits>(load_bytes(strip_.quants[column] + at, count), sign_).packed;
        Vector parts[Columns][Rows] = {};
#pragma GCC unroll 16
        for (int part = 0; part < ExactRow<Bits>::kParts; ++part) {
            Vector elements[Columns];
#pragma GCC unroll 4
            for (int column = 0; column < Columns; ++column)
                elements[column] = Elements<Bits>::part_of(packed[column], part);
#pragma GCC unroll 4
            for (int row = 0; row < Rows; ++row) {
                const Vector some = loaded_once(given[row] + part * kWidth);
#pragma GCC unroll 4
                for (int column = 0; column < Columns; ++column)
                    parts[column][row] += elements[column] * some;
            }
        }
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column) {
            const Vector scale = spread(scales[column], block_of);
#pragma GCC unroll 4
            for (int row = 0; row < Rows; ++row)
                sums_[column][row] += parts[column][row] * scale;
        }
    }

    Decoder<Bits> decoder_;
    Strip<Bits, Columns> strip_;
    bool fetches_; ///< whether weights come from memory
    ExactRow<Bits> first_;
    int64_t row_floats_;
    int sign_;
    Vector sums_[Columns][Rows] = {};
};

} // namespace

void prepare_exact(const BlockTask &task, int64_t first_row, int64_t row_end) {
    for (int64_t row = first_row; row < row_end; ++row)
        if (task.format.bits == 8)
            separate_row<8>(task, row);
        else if (task.format.bits == 4)
            separate_row<4>(task, row);
        else
            separate_row<2>(task, row);
}

void multiply_exact(const BlockTask &task) {
    cover<ExactTile, 4>(task);
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
