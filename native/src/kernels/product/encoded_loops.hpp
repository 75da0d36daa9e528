/// Products by encoded rows: few rows are multiplied as elements are decoded, for many rows the
/// elements become panels of float32 once. Included by loops that are compiled once for each
/// instruction set.
#pragma once

#include "block_panel.hpp"
#include "block_rows.hpp"
#include "encoded_lanes.hpp"

#include <array>
#include <type_traits>
#include <utility>

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int kMostRows = 8;                     ///< of a tile
constexpr int kMostSums = kWidth == 16 ? 16 : 8; ///< likewise

/// Decodes the elements of a unit.
template <class Coding> void decode_unit(const char *from, int64_t elements, float *to) {
    const Coding unit(from);
    for (int64_t step = 0; step < elements / Coding::kStep; ++step) {
        Vector values[Coding::kVectors];
        unit.decode(step, values);
#pragma GCC unroll 8
        for (int vector = 0; vector < Coding::kVectors; ++vector)
            store(to + Coding::place(step, vector), values[vector]);
    }
}

/// Calls `body` with the decoder of a type.
template <class Body> void with_code(RowCode type, const Body &body) {
    switch (type) {
    case RowCode::kF16:
        return body(std::type_identity<Code<RowCode::kF16>>());
    case RowCode::kBf16:
        return body(std::type_identity<Code<RowCode::kBf16>>());
    case RowCode::kQ4_1:
        return body(std::type_identity<Code<RowCode::kQ4_1>>());
    case RowCode::kQ5_0:
        return body(std::type_identity<Code<RowCode::kQ5_0>>());
    case RowCode::kQ5_1:
        return body(std::type_identity<Code<RowCode::kQ5_1>>());
    case RowCode::kQ4K:
        return body(std::type_identity<Code<RowCode::kQ4K>>());
    case RowCode::kQ5K:
        return body(std::type_identity<Code<RowCode::kQ5K>>());
    case RowCode::kQ6K:
        return body(std::type_identity<Code<RowCode::kQ6K>>());
    }
}

/// Sums of some columns and rows, held in registers. Those of a row have one order of additions in
/// every tile.
template <class Coding, int Columns, int Rows> class EncodedTile {
  public:
    static void run(const BlockTask &task, const RowUnit &unit, const Ahead &ahead, int64_t row,
                    int64_t column) {
        const char *from = task.matrix.quants + column * task.format.quants_row;
        const char *source = task.source + row * task.source_row;
        EncodedTile tile;
        int64_t fetched = row == 0 ? 0 : task.format.quants_row; // weights come from memory once
        for (int64_t first = 0, at = 0; first < task.depth;
             first += unit.elements, from += unit.bytes, at += unit.bytes) {
            for (; fetched <= at; fetched += kBlockLine)
                fetch(from + ahead.quants, task.format.quants_row);
            tile.add_unit(from, task.format.quants_row, source + first * kBlockFloat,
                          task.source_row, unit.elements);
        }
        write_sums(task, row, column, tile.sums_);
    }

  private:
    static void fetch(const char *from, int64_t row_bytes) {
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column)
            __builtin_prefetch(from + column * row_bytes);
    }

    void add_unit(const char *from, int64_t row_bytes, const char *source, int64_t source_row,
                  int64_t elements) {
        const std::array<Coding, Columns> units =
            [&]<size_t... kColumn>(std::index_sequence<kColumn...>) {
                return std::array<Coding, Columns>{Coding(from + kColumn * row_bytes)...};
            }(std::make_index_sequence<Columns>());
        for (int64_t step = 0; step < elements / Coding::kStep; ++step) {
            Vector values[Columns][Coding::kVectors];
#pragma GCC unroll 4
            for (int column = 0; column < Columns; ++column)
                units[column].decode(step, values[column]);
#pragma GCC unroll 8
            for (int vector = 0; vector < Coding::kVectors; ++vector) {
                const char *given = source + Coding::place(step, vector) * kBlockFloat;
#pragma GCC unroll 8
                for (int row = 0; row < Rows; ++row) {
                    const Vector some =
                        loaded_once(reinterpret_cast<const float *>(given + row * source_row));
#pragma GCC unroll 4
                    for (int column = 0; column < Columns; ++column)
                        sums_[column][row] += values[column][vector] * some;
                }
            }
        }
    }

    Vector sums_[Columns][Rows] = {};
};

template <class Coding> void multiply_few(const BlockTask &task, const RowUnit &unit) {
    const Ahead ahead(task.format);
    const auto cover = [&]<int Rows>(std::integral_constant<int, Rows>, int64_t row,
                                     int64_t column) {
        constexpr int kFitting = kMostSums / Rows, kColumns = kFitting < 4 ? kFitting : 4;
        for (int64_t after = 0; after < kStripColumns; after += kColumns)
            EncodedTile<Coding, kColumns, Rows>::run(task, unit, ahead, row, column + after);
    };
    int64_t column = task.first_column;
    for (; column + kStripColumns <= task.column_end; column += kStripColumns)
        by_few<kMostRows>(task.rows, [&](auto rows, int64_t row) { cover(rows, row, column); });
    for (; column < task.column_end; ++column)
        by_few<kMostRows>(task.rows, [&]<int Rows>(std::integral_constant<int, Rows>, int64_t row) {
            EncodedTile<Coding, 1, Rows>::run(task, unit, ahead, row, column);
        });
}

/// Decodes a part, `kWidth` columns at a time: [column][kBlockDepth] before they are transposed.
template <class Coding>
void decode_part(const BlockTask &task, const RowUnit &unit, const PanelPart &part, float *panel,
                 float *room) {
    const int64_t skipped = part.deep / unit.elements * unit.bytes;
    for (int64_t column = 0; column < part.columns; column += kWidth) {
        const int64_t left = part.columns - column, columns = left < kWidth ? left : kWidth;
        for (int64_t each = 0; each < columns; ++each) {
            const int64_t row = part.column + column + each;
            const char *from = task.matrix.quants + row * task.format.quants_row + skipped;
            float *to = room + each * kBlockDepth;
            for (int64_t first = 0; first < part.depth; first += unit.elements, from += unit.bytes)
                decode_unit<Coding>(from, unit.elements, to + first);
        }
        pack_panel(room, 1, kBlockDepth, part.depth, columns, panel + column);
    }
}

template <class Coding> void multiply_many(const BlockTask &task, const RowUnit &unit) {
    multiply_panels(task, [&](const PanelPart &part, float *panel, float *room) {
        decode_part<Coding>(task, unit, part, panel, room);
    });
}

} // namespace

void multiply_encoded(const EncodedTask &task) {
    with_code(task.type, [&]<class Coding>(std::type_identity<Coding>) {
        multiply_few<Coding>(task.block, row_unit(task.type));
    });
}

void multiply_encoded_rows(const EncodedTask &task) {
    with_code(task.type, [&]<class Coding>(std::type_identity<Coding>) {
        multiply_many<Coding>(task.block, row_unit(task.type));
    });
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
