/// Products of activations rounded to int8 by encoded rows. Included by loops that are compiled
/// once for each instruction set.
///
/// Quants are unpacked in registers for some rows of activations, which lie in the order of the
/// quants: for each step two vectors of numbers, then the scale of each lane, and that scale times
/// the sum of the lane's numbers, by which the least number of the weights is multiplied.
#pragma once

#include "block_rounding.hpp"
#include "block_rows.hpp"
#include "encoded_int8_lanes.hpp"

#include <array>
#include <utility>

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

template <class Coding> struct Int8Steps {
    static constexpr int kScales = Coding::Step::kScales;
    static constexpr int64_t kBytes = (2 + 2 * kScales) * kLine, kElements = 2 * kLine;
};

/// Row of activations in int8, first in the order of its elements, then in that of steps.
template <class Coding> class Int8StepRow {
  public:
    Int8StepRow(const BlockTask &task, int64_t row)
        : task_(task), padded_(block_round_up(task.depth, kEncodedStep)),
          steps_(task.shared + row * task.shared_row),
          numbers_(reinterpret_cast<int8_t *>(steps_ + 3 * padded_)),
          scales_(reinterpret_cast<float *>(numbers_ + padded_)) {}

    void round(int64_t row) {
        Writer writer{reinterpret_cast<char *>(numbers_)};
        float *sums = scales_ + block_round_up(padded_ / Coding::kGroup, kBlockLanes);
        round_blocks(task_, row, writer, scales_, sums, 1);
    }

    void order() {
        using Steps = Int8Steps<Coding>;
        char *to = steps_;
        for (int64_t first = 0; first < task_.depth; first += Steps::kElements, to += Steps::kBytes)
            order_step(first / Steps::kElements, to);
    }

  private:
    struct Writer {
        void put(Ints numbers) {
            store_bytes(to, numbers);
            to += kWidth;
        }
        char *to;
    };

    void order_step(int64_t index, char *to) const {
        using Steps = Int8Steps<Coding>;
        constexpr int64_t kWhole = Coding::kSteps * Steps::kElements; // of a decoder
        const int64_t base = index / Coding::kSteps * kWhole, step = index % Coding::kSteps;
        float scales[Steps::kScales][kWidth], sums[Steps::kScales][kWidth] = {};
        for (int vector = 0; vector < 2; ++vector)
            for (int quad = 0; quad < kQuads; ++quad) {
                const int64_t first = base + Coding::chunk(step, vector, quad);
                int8_t chunk[16] = {};
                float scale = 0.0F;
                if (first < task_.depth) {
                    __builtin_memcpy(chunk, numbers_ + first, sizeof chunk);
                    scale = scales_[first / Coding::kGroup];
                }
                __builtin_memcpy(to + vector * kLine + quad * 16, chunk, sizeof chunk);
                for (int lane = 4 * quad; lane < 4 * quad + 4; ++lane) {
                    const int8_t *four = chunk + lane % 4 * 4;
                    const int sum = four[0] + four[1] + four[2] + four[3];
                    scales[vector % Steps::kScales][lane] = scale;
                    sums[vector % Steps::kScales][lane] += static_cast<float>(sum);
                }
            }
        for (int each = 0; each < Steps::kScales; ++each)
            for (int lane = 0; lane < kWidth; ++lane)
                sums[each][lane] *= scales[each][lane];
        __builtin_memcpy(to + 2 * kLine, scales, sizeof scales);
        __builtin_memcpy(to + 2 * kLine + sizeof scales, sums, sizeof sums);
    }

    const BlockTask &task_;
    int64_t padded_;
    char *steps_;
    int8_t *numbers_;
    float *scales_;
};

/// Sums of some columns and rows, held in registers. Those of a row have one order of additions in
/// every tile.
template <class Coding, int Columns, int Rows> class EncodedInt8Tile {
  public:
    static void run(const BlockTask &task, const RowUnit &unit, const Ahead &ahead, int64_t row,
                    int64_t column) {
        const int64_t row_bytes = task.format.quants_row;
        const char *from = task.matrix.quants + column * row_bytes;
        const char *given = task.shared + row * task.shared_row;
        EncodedInt8Tile tile;
        int64_t fetched = row % kBlockFewRows == 0 ? 0 : row_bytes;
        for (int64_t at = 0; at < row_bytes; at += Coding::kUnits * unit.bytes) {
            for (; fetched <= at; fetched += kBlockLine)
#pragma GCC unroll 4
                for (int each = 0; each < Columns; ++each)
                    __builtin_prefetch(from + at + ahead.quants + each * row_bytes);
            tile.add_units(from + at, row_bytes, (row_bytes - at) / unit.bytes, given,
                           task.shared_row);
            given += Coding::kSteps * Int8Steps<Coding>::kBytes;
        }
        write_sums(task, row, column, tile.sums_);
    }

  private:
    void add_units(const char *from, int64_t row_bytes, int64_t left, const char *given,
                   int64_t given_row) {
        const std::array<Coding, Columns> units =
            [&]<size_t... kColumn>(std::index_sequence<kColumn...>) {
                return std::array<Coding, Columns>{Coding(from + kColumn * row_bytes, left)...};
            }(std::make_index_sequence<Columns>());
        for (int64_t step = 0; step < Coding::kSteps; ++step) {
            typename Coding::Step quants[Columns];
#pragma GCC unroll 4
            for (int column = 0; column < Columns; ++column)
                quants[column] = units[column].decode(step);
#pragma GCC unroll 8
            for (int row = 0; row < Rows; ++row)
                add_row(quants, row, given + step * Int8Steps<Coding>::kBytes + row * given_row);
        }
    }

    void add_row(const typename Coding::Step (&quants)[Columns], int row, const char *given) {
        constexpr int kScales = Coding::Step::kScales;
        Bytes numbers[2];
        Vector scales[kScales], totals[kScales];
#pragma GCC unroll 2
        for (int each = 0; each < 2; ++each) {
            numbers[each] = load_bytes(given + each * kLine, kLine);
            asm("" : "+v"(numbers[each]));
        }
#pragma GCC unroll 2
        for (int each = 0; each < kScales; ++each) {
            scales[each] = loaded_once(floats_at(given, 2 + each));
            totals[each] = loaded_once(floats_at(given, 2 + kScales + each));
        }
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column) {
            const auto &some = quants[column];
            Vector sum = sums_[column][row];
            Bytes dots[2] = {add_dots(Bytes{}, some.bytes[0], numbers[0]), Bytes{}};
            dots[1] = add_dots(kScales == 1 ? dots[0] : Bytes{}, some.bytes[1], numbers[1]);
#pragma GCC unroll 2
            for (int each = 0; each < kScales; ++each) {
                const Ints dot = reinterpret_cast<Ints>(dots[kScales == 1 ? 1 : each]);
                sum += floats_of(dot) * (some.scales[each] * scales[each]);
                sum += some.least[each] * totals[each];
            }
            sums_[column][row] = sum;
        }
    }

    static const float *floats_at(const char *given, int vector) {
        return reinterpret_cast<const float *>(given + vector * kLine);
    }

    Vector sums_[Columns][Rows] = {};
};

template <class Coding> void multiply_int8_rows(const BlockTask &task, const RowUnit &unit) {
    constexpr int kMost = kWidth == 16 ? 16 : 8; // sums of a tile
    const Ahead ahead(task.format);
    const auto cover = [&](int64_t row, int64_t rows, int64_t column, auto is_strip) {
        by_few<kBlockFewRows>(rows,
                              [&]<int Rows>(std::integral_constant<int, Rows>, int64_t place) {
                                  constexpr int kFitting = kMost / Rows < 4 ? kMost / Rows : 4;
                                  constexpr int kColumns = is_strip ? kFitting : 1;
                                  const int64_t columns = is_strip ? kStripColumns : 1;
                                  for (int64_t after = 0; after < columns; after += kColumns)
                                      EncodedInt8Tile<Coding, kColumns, Rows>::run(
                                          task, unit, ahead, row + place, column + after);
                              });
    };
    for (int64_t row = 0; row < task.rows; row += kBlockFewRows) {
        const int64_t left = task.rows - row, rows = left < kBlockFewRows ? left : kBlockFewRows;
        int64_t column = task.first_column;
        for (; column + kStripColumns <= task.column_end; column += kStripColumns)
            cover(row, rows, column, std::true_type());
        for (; column < task.column_end; ++column)
            cover(row, rows, column, std::false_type());
    }
}

/// Calls `body` with the decoder to integers of a type.
template <class Body> void with_int8_code(RowCode type, const Body &body) {
    switch (type) {
    case RowCode::kQ4_1:
        return body(std::type_identity<Int8Code<RowCode::kQ4_1>>());
    case RowCode::kQ5_0:
        return body(std::type_identity<Int8Code<RowCode::kQ5_0>>());
    case RowCode::kQ5_1:
        return body(std::type_identity<Int8Code<RowCode::kQ5_1>>());
    case RowCode::kQ4K:
        return body(std::type_identity<Int8Code<RowCode::kQ4K>>());
    case RowCode::kQ5K:
        return body(std::type_identity<Int8Code<RowCode::kQ5K>>());
    case RowCode::kQ6K:
        return body(std::type_identity<Int8Code<RowCode::kQ6K>>());
    case RowCode::kF16:
    case RowCode::kBf16:
        return;
    }
}

} // namespace

void round_encoded(const EncodedTask &task, int64_t first_row, int64_t row_end) {
    with_int8_code(task.type, [&]<class Coding>(std::type_identity<Coding>) {
        for (int64_t row = first_row; row < row_end; ++row) {
            Int8StepRow<Coding> to(task.block, row);
            to.round(row);
            to.order();
        }
    });
}

void multiply_encoded_int8(const EncodedTask &task) {
    with_int8_code(task.type, [&]<class Coding>(std::type_identity<Coding>) {
        multiply_int8_rows<Coding>(task.block, row_unit(task.type));
    });
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
