/// Products of many rows of activations rounded to int8 by encoded rows: quants are unpacked once
/// for all rows. Included by loops that are compiled once for each instruction set, which must have
/// dot products of bytes.
///
/// A panel has the quants of a vector of columns, a vector for each four elements, in the order of
/// the elements, and two vectors for each group of elements: scales and least numbers.
#pragma once

#include "encoded_int8.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int kEncodedRowsAtOnce = 12;

/// Prepared row of activations, in the order of its elements: numbers, then the scale of each
/// group, then that scale times the sum of the group's numbers.
template <class Coding> struct EncodedPanelRow {
    EncodedPanelRow(const BlockTask &task, int64_t row)
        : numbers(task.shared + row * task.shared_row),
          scales(reinterpret_cast<float *>(numbers + block_round_up(task.depth, kEncodedStep))),
          totals(scales + block_round_up(block_round_up(task.depth, kEncodedStep) / Coding::kGroup,
                                         kBlockLanes)) {}

    void round(const BlockTask &task, int64_t row) const {
        NumberWriter writer{numbers};
        round_blocks(task, row, writer, scales, totals, 1);
        for (int64_t group = 0; group < task.blocks; ++group)
            totals[group] *= scales[group];
    }

    char *numbers;
    float *scales, *totals;
};

/// Columns of a panel, and elements of its depth.
struct EncodedPart {
    int64_t column, first, depth;
    char *quants;          ///< [element / 4][column][4]
    float *scales, *least; ///< [group][column]
};

/// Transposes words of 16 vectors: lane `i` of each becomes vector `i`.
inline void transpose_lanes(Bytes (&x)[16]) {
    for (int four = 0; four < 16; four += 4)
        transpose_words(*reinterpret_cast<Bytes(*)[4]>(x + four));
    Bytes to[16];
    for (int word = 0; word < 4; ++word) { // a lane of 16 bytes has that word of four vectors
        const Bytes low = _mm512_shuffle_i32x4(x[word], x[4 + word], 0x44);
        const Bytes high = _mm512_shuffle_i32x4(x[word], x[4 + word], 0xEE);
        const Bytes next_low = _mm512_shuffle_i32x4(x[8 + word], x[12 + word], 0x44);
        const Bytes next_high = _mm512_shuffle_i32x4(x[8 + word], x[12 + word], 0xEE);
        to[word] = _mm512_shuffle_i32x4(low, next_low, 0x88);
        to[4 + word] = _mm512_shuffle_i32x4(low, next_low, 0xDD);
        to[8 + word] = _mm512_shuffle_i32x4(high, next_high, 0x88);
        to[12 + word] = _mm512_shuffle_i32x4(high, next_high, 0xDD);
    }
    __builtin_memcpy(x, to, sizeof to);
}

/// Unpacks a part of a vector of columns; behind the last column of a task, that one again.
template <class Coding> class EncodedPanel {
  public:
    EncodedPanel(const BlockTask &task, const RowUnit &unit, const EncodedPart &part)
        : task_(task), unit_(unit), part_(part) {}

    void fill() const {
        for (int64_t first = 0; first < part_.depth; first += kWhole)
            fill_whole(first);
    }

  private:
    static constexpr int64_t kWhole = Coding::kSteps * Int8Steps<Coding>::kElements; ///< at once

    void fill_whole(int64_t first) const {
        char numbers[kWidth * kWhole] = {}; // [column][element]
        const int64_t left = part_.depth - first;
        for (int64_t lane = 0; lane < kWidth; ++lane) {
            const int64_t column =
                part_.column + lane < task_.column_end ? part_.column + lane : task_.column_end - 1;
            const char *from = task_.matrix.quants + column * task_.format.quants_row +
                               (part_.first + first) / unit_.elements * unit_.bytes;
            __builtin_prefetch(from + kBlockLine * 4);
            const Coding decoder(from, left / unit_.elements);
            for (int64_t step = 0; step < Coding::kSteps; ++step)
                put(decoder.decode(step), step, first, lane, numbers + lane * kWhole);
        }
        for (int64_t element = 0; element < kWhole && element < left; element += kLine) {
            Bytes words[16];
            for (int lane = 0; lane < kWidth; ++lane)
                words[lane] = load_bytes(numbers + lane * kWhole + element, kLine);
            transpose_lanes(words);
            __builtin_memcpy(part_.quants + (first + element) * kWidth, words, sizeof words);
        }
    }

    /// Writes the numbers of a step in the order of their elements, and the scales of groups.
    void put(const typename Coding::Step &some, int64_t step, int64_t first, int64_t lane,
             char *numbers) const {
        for (int vector = 0; vector < 2; ++vector) {
            const int each = vector % Coding::Step::kScales;
            for (int quad = 0; quad < kQuads; ++quad) {
                const int64_t element = Coding::chunk(step, vector, quad);
                if (first + element >= part_.depth)
                    break;
                __builtin_memcpy(numbers + element,
                                 reinterpret_cast<const char *>(&some.bytes[vector]) + 16 * quad,
                                 16);
                const int64_t place = (first + element) / Coding::kGroup * kWidth + lane;
                part_.scales[place] = some.scales[each][4 * quad];
                part_.least[place] = some.least[each][4 * quad];
            }
        }
    }

    const BlockTask &task_;
    const RowUnit &unit_;
    const EncodedPart &part_;
};

/// Sums of a vector of columns and some rows, held in registers.
template <class Coding, int Rows>
void add_encoded_panel(const BlockTask &task, const EncodedPart &part, int64_t row) {
    const int64_t columns = task.column_end - part.column;
    const EncodedPanelRow<Coding> given(task, row);
    const char *numbers = given.numbers + part.first;
    const int64_t step = task.shared_row;
    const auto floats = [&](const float *from, int64_t group) {
        return reinterpret_cast<const char *>(from + part.first / Coding::kGroup + group);
    };
    const auto target = [&](int each) {
        return reinterpret_cast<float *>(task.target + (row + each) * task.target_row) +
               part.column;
    };
    Vector sums[Rows];
#pragma GCC unroll 16
    for (int each = 0; each < Rows; ++each)
        sums[each] = part.first > 0         ? load_some(target(each), columns)
                     : task.bias == nullptr ? Vector{}
                                            : load_some(task.bias + part.column, columns);
    const char *quants = part.quants;
    for (int64_t group = 0; group < part.depth / Coding::kGroup; ++group) {
        Bytes dots[Rows] = {};
#pragma GCC unroll 8
        for (int word = 0; word < Coding::kGroup / 4; ++word, quants += kLine, numbers += 4) {
            const Bytes some = load_bytes(quants, kLine);
#pragma GCC unroll 16
            for (int each = 0; each < Rows; ++each)
                dots[each] =
                    add_dots(dots[each], some, _mm512_set1_epi32(dword_at(numbers + each * step)));
        }
        const Vector scale = load(part.scales + group * kWidth);
        const Vector least = load(part.least + group * kWidth);
        const char *scales = floats(given.scales, group), *totals = floats(given.totals, group);
#pragma GCC unroll 16
        for (int each = 0; each < Rows; ++each) {
            float by, total;
            __builtin_memcpy(&by, scales + each * step, sizeof by);
            __builtin_memcpy(&total, totals + each * step, sizeof total);
            sums[each] += floats_of(reinterpret_cast<Ints>(dots[each])) * (scale * by);
            sums[each] += least * total;
        }
    }
#pragma GCC unroll 16
    for (int each = 0; each < Rows; ++each)
        store_some(target(each), sums[each], columns);
}

template <class Coding> void multiply_encoded_panels(const BlockTask &task, const RowUnit &unit) {
    auto *scales = reinterpret_cast<float *>(task.scratch + kWidth * kEncodedPanelDepth);
    float *least = scales + kWidth * kEncodedPanelDepth / Coding::kGroup;
    for (int64_t column = task.first_column; column < task.column_end; column += kWidth)
        for (int64_t first = 0; first < task.depth; first += kEncodedPanelDepth) {
            const int64_t left = task.depth - first;
            const EncodedPart part{
                column,       first,  left < kEncodedPanelDepth ? left : kEncodedPanelDepth,
                task.scratch, scales, least};
            EncodedPanel<Coding>(task, unit, part).fill();
            int64_t row = 0;
            for (; row + kEncodedRowsAtOnce <= task.rows; row += kEncodedRowsAtOnce)
                add_encoded_panel<Coding, kEncodedRowsAtOnce>(task, part, row);
            by_few<4>(
                task.rows,
                [&]<int Rows>(std::integral_constant<int, Rows>, int64_t place) {
                    add_encoded_panel<Coding, Rows>(task, part, place);
                },
                row);
        }
}

} // namespace

void round_encoded_panels(const EncodedTask &task, int64_t first_row, int64_t row_end) {
    with_int8_code(task.type, [&]<class Coding>(std::type_identity<Coding>) {
        for (int64_t row = first_row; row < row_end; ++row)
            EncodedPanelRow<Coding>(task.block, row).round(task.block, row);
    });
}

void multiply_encoded_panels(const EncodedTask &task) {
    with_int8_code(task.type, [&]<class Coding>(std::type_identity<Coding>) {
        multiply_encoded_panels<Coding>(task.block, row_unit(task.type));
    });
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
