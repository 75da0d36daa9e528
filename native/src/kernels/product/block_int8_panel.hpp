/// Products of many rows of activations rounded to int8: quants are unpacked once for all rows.
/// Included by loops that are compiled once for each instruction set.
///
/// A panel has a vector of columns for each four elements, as natural bytes. Without dot products
/// of bytes, it has one for each two elements of 8 bits, as 16-bit numbers less the middle.
/// Elements of a word lie in the order in which they are unpacked, and so do activations.
#pragma once

#include "block_columns.hpp"
#include "block_int8.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int kRowsAtOnce = kHasDot ? 12 : 4;
constexpr int kFewRowsAtOnce = 4;
constexpr int64_t kPanelBytes = 16384; ///< of a part of a panel, which stays in the first cache
constexpr int64_t kShortSums = 32;     ///< elements whose products 16 bits can sum

/// Prepared row of activations: numbers, the scale of each block, and the middle times the sum of
/// each block's numbers, negative.
template <int Bits> struct PanelRow {
    static constexpr int64_t kBytes = kIsCentred<Bits> ? 2 : 1; ///< of a number

    PanelRow(const BlockTask &task, int64_t row)
        : numbers(task.shared + row * task.shared_row),
          scales(
              reinterpret_cast<float *>(numbers + kBytes * padded_depth(task.format, task.depth))),
          starts(reinterpret_cast<int32_t *>(scales + padded_blocks(task.format, task.depth))) {}

    char *numbers;
    float *scales;
    int32_t *starts;
};

/// Writer of integers in the order of unpacked words: their first elements, then their second ones
/// and so on.
template <int Bits> class PanelNumbers {
  public:
    explicit PanelNumbers(char *to) : to_(to) {}

    void put(Ints x) {
        if constexpr (Bits == 8 && kHasDot) {
            write_bytes(x);
        } else if constexpr (Bits == 8) {
            write_shorts(__builtin_shufflevector(x, x, 0, 2, 1, 3, 4, 6, 5, 7));
        } else if constexpr (Bits == 4 && kWidth == 16) {
            write_bytes(__builtin_shufflevector(x, x, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11,
                                                13, 15));
        } else if constexpr (Bits == 4) {
            write_bytes(__builtin_shufflevector(x, x, 0, 2, 4, 6, 1, 3, 5, 7));
        } else if constexpr (kWidth == 16) {
            write_bytes(__builtin_shufflevector(x, x, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7,
                                                11, 15));
        } else if (is_second_) {
            write_bytes(__builtin_shufflevector(first_, x, 0, 4, 8, 12, 1, 5, 9, 13));
            write_bytes(__builtin_shufflevector(first_, x, 2, 6, 10, 14, 3, 7, 11, 15));
            is_second_ = false;
        } else {
            first_ = x;
            is_second_ = true;
        }
    }

  private:
    void write_bytes(Ints numbers) {
        store_bytes(to_, numbers);
        to_ += kWidth;
    }

    void write_shorts(Ints numbers) {
        typedef int16_t Shorts __attribute__((vector_size(kWidth * sizeof(int16_t))));
        const Shorts shorts = __builtin_convertvector(numbers, Shorts);
        __builtin_memcpy(to_, &shorts, sizeof shorts);
        to_ += sizeof shorts;
    }

    char *to_;
    Ints first_{};
    bool is_second_ = false;
};

template <int Bits> void round_panel_row(const BlockTask &task, int64_t row) {
    const PanelRow<Bits> to(task, row);
    PanelNumbers<Bits> numbers(to.numbers);
    auto *sums = reinterpret_cast<float *>(to.starts);
    round_blocks(task, row, numbers, to.scales, sums, 1);
    // In floats: lanes past the last block have any number, which would overflow as an integer.
    constexpr auto middle = static_cast<float>(-Decoder<Bits>::kMiddle);
    for (int64_t block = 0; block < task.blocks; block += kWidth) {
        const Ints starts = rounded(load(sums + block) * middle);
        store(sums + block, reinterpret_cast<Vector>(starts));
    }
}

/// Blocks of a vector of columns, unpacked.
struct PanelBlocks {
    int64_t column, first, count; ///< first column; blocks
    const char *quants;
    const float *scales, *zeros; ///< [block][column]; null zeros for none
};

/// Unpacks the words of a vector of columns.
template <int Bits> void unpack_words(const float *words, int64_t count, int flip, char *to) {
    for (int64_t word = 0; word < count; ++word) {
        const Ints packed = reinterpret_cast<Ints>(load(words + word * kWidth)) ^ flip;
        const auto put = [&](Ints quants) {
            __builtin_memcpy(to, &quants, sizeof quants);
            to += sizeof quants;
        };
        if constexpr (Bits == 8 && kHasDot) {
            put(packed);
        } else if constexpr (Bits == 8) {
            const auto bytes = reinterpret_cast<Bytes>(packed);
            put(reinterpret_cast<Ints>(first_bytes(bytes)));
            put(reinterpret_cast<Ints>(second_bytes(bytes)));
        } else {
            constexpr int kMask = Decoder<Bits>::kMask * 0x01010101;
            for (int part = 0; part < 8 / Bits; ++part)
                put((packed >> (part * Bits)) & kMask);
        }
    }
}

/// Sums of a vector of columns and some rows, held in registers.
template <int Bits, int Rows> class PanelTile {
  public:
    PanelTile(const BlockTask &task, int64_t row) : task_(task), row_(row) {
        for (int each = 0; each < Rows; ++each) {
            const PanelRow<Bits> given(task, row + each);
            numbers_[each] = given.numbers;
            scales_[each] = given.scales;
            starts_[each] = given.starts;
        }
    }

    void add(const PanelBlocks &part) {
        const int64_t columns = task_.column_end - part.column;
        Vector sums[Rows];
#pragma GCC unroll 16
        for (int row = 0; row < Rows; ++row)
            sums[row] = part.first > 0          ? load_some(target(row, part), columns)
                        : task_.bias == nullptr ? Vector{}
                                                : load_some(task_.bias + part.column, columns);
        const int64_t bytes = task_.format.block * PanelRow<Bits>::kBytes;
        const char *quants = part.quants;
        for (int64_t index = 0; index < part.count; ++index, quants += bytes * kWidth) {
            const int64_t block = part.first + index;
            Ints dots[Rows];
#pragma GCC unroll 16
            for (int row = 0; row < Rows; ++row)
                dots[row] = Ints{} + (kIsCentred<Bits> ? 0 : starts_[row][block]);
            add_dots_of(quants, block * bytes, bytes, dots);
            const Vector scale = load(part.scales + index * kWidth);
#pragma GCC unroll 16
            for (int row = 0; row < Rows; ++row) {
                Vector dot = floats_of(dots[row]);
                if (part.zeros != nullptr)
                    dot += load(part.zeros + index * kWidth) *
                           spread(static_cast<float>(starts_[row][block]));
                sums[row] += dot * (scale * scales_[row][block]);
            }
        }
#pragma GCC unroll 16
        for (int row = 0; row < Rows; ++row)
            store_some(target(row, part), sums[row], columns);
    }

  private:
    float *target(int row, const PanelBlocks &part) const {
        return reinterpret_cast<float *>(task_.target + (row_ + row) * task_.target_row) +
               part.column;
    }

    /// Returns four bytes of activations in each lane.
    Bytes given(int row, int64_t at) const {
        int four;
        __builtin_memcpy(&four, numbers_[row] + at, sizeof four);
        return reinterpret_cast<Bytes>(Ints{} + four);
    }

    /// Adds the products of a block.
    void add_dots_of(const char *quants, int64_t at, int64_t bytes, Ints (&dots)[Rows]) const {
        const int64_t end = at + bytes;
        if constexpr (kHasDot) {
            for (; at < end; at += 4 * kVectors, quants += kVectors * kLine)
                add_fours_of(quants, at, dots);
        } else if constexpr (Bits == 8) {
            for (; at < end; at += 4 * kVectors, quants += kVectors * kLine)
                add_pairs_of(quants, at, dots);
        } else if (bytes < kShortSums) {
            add_bytes<kVectors>(quants, at, dots);
        } else {
            for (; at < end; at += kShortSums, quants += kShortSums / 4 * kLine)
                add_bytes<kShortSums / 4>(quants, at, dots);
        }
    }

    /// Adds dot products of four natural bytes.
    void add_fours_of(const char *quants, int64_t at, Ints (&dots)[Rows]) const {
#pragma GCC unroll 4
        for (int vector = 0; vector < kVectors; ++vector) {
            const Bytes some = load_bytes(quants + vector * kLine, kLine);
#pragma GCC unroll 16
            for (int row = 0; row < Rows; ++row)
                dots[row] = reinterpret_cast<Ints>(add_dots(reinterpret_cast<Bytes>(dots[row]),
                                                            some, given(row, at + 4 * vector)));
        }
    }

    /// Adds products of natural bytes, whose sums 16 bits hold.
    template <int Vectors>
    void add_bytes(const char *quants, int64_t at, Ints (&dots)[Rows]) const {
        Bytes near[Rows] = {};
#pragma GCC unroll 8
        for (int vector = 0; vector < Vectors; ++vector) {
            const Bytes some = load_bytes(quants + vector * kLine, kLine);
#pragma GCC unroll 16
            for (int row = 0; row < Rows; ++row) {
                near[row] = add_shorts(near[row], pairs_of(some, given(row, at + 4 * vector)));
                asm("" : "+x"(near[row])); // one after another: a tree of sums needs more registers
            }
        }
#pragma GCC unroll 16
        for (int row = 0; row < Rows; ++row)
            dots[row] =
                reinterpret_cast<Ints>(add_pairs(reinterpret_cast<Bytes>(dots[row]), near[row]));
    }

    /// Adds products of 16-bit numbers.
    void add_pairs_of(const char *quants, int64_t at, Ints (&dots)[Rows]) const {
#pragma GCC unroll 4
        for (int vector = 0; vector < kVectors; ++vector) {
            const Bytes some = load_bytes(quants + vector * kLine, kLine);
#pragma GCC unroll 16
            for (int row = 0; row < Rows; ++row) {
                dots[row] +=
                    reinterpret_cast<Ints>(pairs_of_shorts(some, given(row, at + 4 * vector)));
                asm("" : "+x"(dots[row]));
            }
        }
    }

    static constexpr int kVectors = 4; ///< of the shortest block

    const BlockTask &task_;
    int64_t row_;
    const char *numbers_[Rows];
    const float *scales_[Rows];
    const int32_t *starts_[Rows];
};

template <int Bits> void add_panel_rows(const BlockTask &task, const PanelBlocks &part) {
    int64_t row = 0;
    for (; row + kRowsAtOnce <= task.rows; row += kRowsAtOnce)
        PanelTile<Bits, kRowsAtOnce>(task, row).add(part);
    for (; row + kFewRowsAtOnce <= task.rows; row += kFewRowsAtOnce)
        PanelTile<Bits, kFewRowsAtOnce>(task, row).add(part);
    for (; row < task.rows; ++row)
        PanelTile<Bits, 1>(task, row).add(part);
}

/// Unpacks blocks of a vector of columns.
template <int Bits>
void unpack_blocks(const BlockTask &task, const ColumnLanes<Bits> &columns, int flip,
                   const PanelBlocks &part, char *to) {
    constexpr int64_t kPerWord = ColumnLanes<Bits>::kPerWord, kAtOnce = 64;
    const int64_t start = part.first * task.format.block;
    const int64_t count = part.count * task.format.block / kPerWord;
    float words[kAtOnce * kWidth];
    for (int64_t word = 0; word < count; word += kAtOnce) {
        const int64_t some = count - word < kAtOnce ? count - word : kAtOnce;
        columns.words(start + word * kPerWord, some, words);
        unpack_words<Bits>(words, some, flip,
                           to + word * kPerWord * PanelRow<Bits>::kBytes * kWidth);
    }
}

/// Reads scales, and what a row's `starts` are multiplied by for the zero points.
template <int Bits>
void read_parameters(const ColumnLanes<Bits> &columns, const PanelBlocks &part, float *scales,
                     float *zeros) {
    for (int64_t index = 0; index < part.count; index += kWidth) {
        float *to = zeros + index * kWidth;
        columns.parameters(part.first + index, scales + index * kWidth, to);
        for (int64_t block = 0; block < kWidth; ++block)
            store(to + block * kWidth,
                  load(to + block * kWidth) * (-1.0F / static_cast<float>(Decoder<Bits>::kMiddle)));
    }
}

template <int Bits> void multiply_panel_columns(const BlockTask &task) {
    const Decoder<Bits> decoder(task.format);
    const int64_t bytes = task.format.block * PanelRow<Bits>::kBytes * kWidth;
    const int64_t fitting = kPanelBytes / bytes, most = fitting > kWidth ? fitting : kWidth;
    const int64_t held = most < task.blocks ? most : task.blocks;
    const int flip = kIsCentred<Bits> == (decoder.sign == 0) ? kFirstBits<Bits> : 0;
    auto *scales = reinterpret_cast<float *>(task.scratch + held * bytes);
    float *zeros = scales + block_round_up(held, kWidth) * kWidth;
    for (int64_t column = task.first_column; column < task.column_end; column += kWidth) {
        const ColumnLanes<Bits> columns(task, decoder, column);
        for (int64_t first = 0; first < task.blocks; first += most) {
            const int64_t left = task.blocks - first;
            const PanelBlocks part{
                column,       first,  left < most ? left : most,
                task.scratch, scales, decoder.zeros == BlockZeros::kMiddle ? nullptr : zeros};
            unpack_blocks<Bits>(task, columns, flip, part, task.scratch);
            read_parameters<Bits>(columns, part, scales, zeros);
            add_panel_rows<Bits>(task, part);
        }
    }
}

} // namespace

void round_to_int8_panels(const BlockTask &task, int64_t first_row, int64_t row_end) {
    for (int64_t row = first_row; row < row_end; ++row)
        if (task.format.bits == 8)
            round_panel_row<8>(task, row);
        else if (task.format.bits == 4)
            round_panel_row<4>(task, row);
        else
            round_panel_row<2>(task, row);
}

void multiply_int8_panels(const BlockTask &task) {
    if (task.format.bits == 8)
        multiply_panel_columns<8>(task);
    else if (task.format.bits == 4)
        multiply_panel_columns<4>(task);
    else
        multiply_panel_columns<2>(task);
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
