/// Products of activations rounded to int8 by encoded rows. Included by loops that are compiled
/// once for each instruction set.
///
/// Quants are unpacked in registers for some rows of activations, which lie in the order of the
/// quants: for each step two vectors of numbers, then the scale of each lane, and that scale times
/// the sum of the lane's numbers, by which the least number of the weights is multiplied.
///
/// Four steps are multiplied together, as long as a row has as many: their words are transposed, so
/// that a lane has the dot products of whole chunks, and a fourth as many sums become floats.
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
    static constexpr int64_t kBytesOfFour = (8 + 2 * kScales) * kLine;
    static constexpr int kDecoders = 4 / Coding::kSteps;                ///< of four steps
    static constexpr int64_t kUnitsOfFour = kDecoders * Coding::kUnits; ///< likewise
};

/// Writer of numbers in their order.
struct NumberWriter {
    void put(Ints numbers) {
        store_bytes(to, numbers);
        to += kWidth;
    }
    char *to;
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
        NumberWriter writer{reinterpret_cast<char *>(numbers_)};
        float *sums = scales_ + block_round_up(padded_ / Coding::kGroup, kBlockLanes);
        round_blocks(task_, row, writer, scales_, sums, 1);
    }

    void order() {
        using Steps = Int8Steps<Coding>;
        char *to = steps_;
        int64_t first = 0;
        for (; first + 4 * Steps::kElements <= task_.depth; first += 4 * Steps::kElements) {
            order_four(first / Steps::kElements, to);
            to += Steps::kBytesOfFour;
        }
        for (; first < task_.depth; first += Steps::kElements, to += Steps::kBytes)
            order_step(first / Steps::kElements, to);
    }

  private:
    /// Returns the first element of a chunk.
    static int64_t first_of(int64_t index, int vector, int quad) {
        constexpr int64_t kWhole = Coding::kSteps * Int8Steps<Coding>::kElements; // of a decoder
        return index / Coding::kSteps * kWhole +
               Coding::chunk(index % Coding::kSteps, vector, quad);
    }

    /// Orders four steps from one on: numbers by word and vector, then scales and sums.
    void order_four(int64_t index, char *to) const {
        constexpr int kScales = Int8Steps<Coding>::kScales;
        float scales[kScales][kWidth];
        Ints sums[kScales] = {};
        for (int vector = 0; vector < 2; ++vector) {
            const int each = vector % kScales;
            Bytes words[4];
            for (int step = 0; step < 4; ++step) {
                char line[kLine];
                for (int quad = 0; quad < kQuads; ++quad) {
                    const int64_t first = first_of(index + step, vector, quad);
                    __builtin_memcpy(line + quad * 16, numbers_ + first, 16);
                    scales[each][4 * quad + step] = scales_[first / Coding::kGroup];
                }
                words[step] = load_bytes(line, kLine);
            }
            transpose_words(words);
            for (int word = 0; word < 4; ++word) {
                __builtin_memcpy(to + (2 * word + vector) * kLine, &words[word], kLine);
                sums[each] = reinterpret_cast<Ints>(
                    add_dots(reinterpret_cast<Bytes>(sums[each]), all_bytes(1), words[word]));
            }
        }
        for (int each = 0; each < kScales; ++each) {
            const Vector scale = load(scales[each]);
            const Vector total = floats_of(sums[each]) * scale;
            __builtin_memcpy(to + (8 + each) * kLine, &scale, kLine);
            __builtin_memcpy(to + (8 + kScales + each) * kLine, &total, kLine);
        }
    }

    void order_step(int64_t index, char *to) const {
        using Steps = Int8Steps<Coding>;
        float scales[Steps::kScales][kWidth], sums[Steps::kScales][kWidth] = {};
        for (int vector = 0; vector < 2; ++vector)
            for (int quad = 0; quad < kQuads; ++quad) {
                const int64_t first = first_of(index, vector, quad);
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
        const int64_t further = Columns > 1 || Rows > kSingleRows ? ahead.quants : kPageAhead;
        int64_t fetched = row % kBlockFewRows == 0 ? 0 : row_bytes, at = 0;
        const auto fetch = [&] {
            for (; fetched <= at; fetched += kBlockLine)
#pragma GCC unroll 4
                for (int each = 0; each < Columns; ++each)
                    __builtin_prefetch(from + fetched + further + each * row_bytes);
        };
        using Steps = Int8Steps<Coding>;
        constexpr int kPair = Columns > 1 && Rows > 4 ? 2 : 1;
        for (; at + Steps::kUnitsOfFour * unit.bytes <= row_bytes;
             at += Steps::kUnitsOfFour * unit.bytes) {
            fetch();
#pragma GCC unroll 4
            for (int column = 0; column < Columns; column += kPair)
                tile.template add_four<kPair>(from + at, row_bytes, unit.bytes, column, given,
                                              task.shared_row);
            given += Steps::kBytesOfFour;
        }
        for (; at < row_bytes; at += Coding::kUnits * unit.bytes) {
            fetch();
            tile.add_units(from + at, row_bytes, (row_bytes - at) / unit.bytes, given,
                           task.shared_row);
            given += Coding::kSteps * Steps::kBytes;
        }
        write_sums(task, row, column, tile.sums_);
    }

  private:
    /// Four steps of a column.
    struct Four {
        static constexpr int kScales = Coding::Step::kScales;

        void decode(const char *from, int64_t unit_bytes) {
#pragma GCC unroll 4
            for (int each = 0; each < Int8Steps<Coding>::kDecoders; ++each) {
                const Coding decoder(from + each * Coding::kUnits * unit_bytes, Coding::kUnits);
#pragma GCC unroll 4
                for (int part = 0; part < Coding::kSteps; ++part)
                    put(decoder.decode(part), each * static_cast<int>(Coding::kSteps) + part);
            }
            transpose_words(words[0]);
            transpose_words(words[1]);
        }

        void put(const typename Coding::Step &some, int step) {
            words[0][step] = some.bytes[0];
            words[1][step] = some.bytes[1];
#pragma GCC unroll 2
            for (int each = 0; each < kScales; ++each) {
                scales[each] = step == 0 ? some.scales[each]
                                         : with_lanes(scales[each], some.scales[each], step);
                least[each] =
                    step == 0 ? some.least[each] : with_lanes(least[each], some.least[each], step);
            }
        }

        Bytes words[2][4];
        Vector scales[kScales], least[kScales];
    };

    /// Adds the products of four steps of `Count` columns.
    template <int Count>
    void add_four(const char *from, int64_t row_bytes, int64_t unit_bytes, int first,
                  const char *given, int64_t given_row) {
        constexpr int kScales = Coding::Step::kScales;
        Four four[Count];
#pragma GCC unroll 4
        for (int column = 0; column < Count; ++column)
            four[column].decode(from + (first + column) * row_bytes, unit_bytes);
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row) {
            const char *numbers = given + row * given_row;
            Bytes dots[Count][kScales] = {};
#pragma GCC unroll 4
            for (int word = 0; word < 4; ++word)
#pragma GCC unroll 2
                for (int vector = 0; vector < 2; ++vector) {
                    Bytes some = load_bytes(numbers + (2 * word + vector) * kLine, kLine);
                    if (Count > 1)
                        asm("" : "+v"(some));
#pragma GCC unroll 4
                    for (int column = 0; column < Count; ++column)
                        dots[column][vector % kScales] = add_dots(
                            dots[column][vector % kScales], four[column].words[vector][word], some);
                }
#pragma GCC unroll 2
            for (int each = 0; each < kScales; ++each) {
                Vector scale = load(floats_at(numbers, 8 + each)),
                       total = load(floats_at(numbers, 8 + kScales + each));
                if (Count > 1)
                    asm("" : "+v"(scale), "+v"(total));
#pragma GCC unroll 4
                for (int column = 0; column < Count; ++column) {
                    Vector sum = sums_[first + column][row];
                    sum += floats_of(reinterpret_cast<Ints>(dots[column][each])) *
                           (four[column].scales[each] * scale);
                    sum += four[column].least[each] * total;
                    sums_[first + column][row] = sum;
                }
            }
        }
    }

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
    const bool is_short = task.format.quants_row <= kShortRow;
    const auto cover = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
        by_few<kBlockFewRows>(
            rows, [&]<int Rows>(std::integral_constant<int, Rows>, int64_t place) {
                const auto tiles = [&]<int Columns>(std::integral_constant<int, Columns>) {
                    for (int64_t after = 0; after < columns; after += Columns)
                        EncodedInt8Tile<Coding, Columns, Rows>::run(task, unit, ahead, row + place,
                                                                    column + after);
                };
                constexpr int kFitting = kMost / Rows < 4 ? kMost / Rows : 4;
                if (columns == 1 || (Rows <= kSingleRows && !is_short))
                    tiles(std::integral_constant<int, 1>());
                else
                    tiles(std::integral_constant<int, kFitting>());
            });
    };
    for (int64_t row = 0; row < task.rows; row += kBlockFewRows) {
        const int64_t left = task.rows - row, rows = left < kBlockFewRows ? left : kBlockFewRows;
        int64_t column = task.first_column;
        for (; column + kStripColumns <= task.column_end; column += kStripColumns)
            cover(row, rows, column, kStripColumns);
        for (; column < task.column_end; ++column)
            cover(row, rows, column, 1);
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
