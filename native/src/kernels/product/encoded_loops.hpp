/// Products by encoded rows: few rows are multiplied as elements are decoded, for many rows the
/// elements become panels of float32 once. Included by loops that are compiled once for each
/// instruction set.
#pragma once

#include "block_panel.hpp"
#include "encoded_lanes.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int kSums = 2; ///< of a row, so that additions do not wait for each other

/// Calls `body` with the decoder of a type.
template <class Body> void with_code(RowCode type, const Body &body) {
    switch (type) {
    case RowCode::kF16:
        return body(Code<RowCode::kF16>());
    case RowCode::kBf16:
        return body(Code<RowCode::kBf16>());
    case RowCode::kQ4_1:
        return body(Code<RowCode::kQ4_1>());
    case RowCode::kQ5_0:
        return body(Code<RowCode::kQ5_0>());
    case RowCode::kQ5_1:
        return body(Code<RowCode::kQ5_1>());
    case RowCode::kQ4K:
        return body(Code<RowCode::kQ4K>());
    case RowCode::kQ5K:
        return body(Code<RowCode::kQ5K>());
    case RowCode::kQ6K:
        return body(Code<RowCode::kQ6K>());
    }
}

template <int Rows, class Coding>
void multiply_column(const BlockTask &task, const RowUnit &unit, int64_t row, int64_t column) {
    const char *from = task.matrix.quants + column * task.format.quants_row;
    const char *source = task.source + row * task.source_row;
    Vector sums[Rows][kSums] = {};
    for (int64_t first = 0; first < task.depth; first += unit.elements, from += unit.bytes)
        Coding::decode(from, [&](int64_t element, Vector value) __attribute__((always_inline)) {
            const int64_t place = (first + element) * static_cast<int64_t>(sizeof(float));
            for (int each = 0; each < Rows; ++each)
                sums[each][element / kWidth % kSums] +=
                    value *
                    load(reinterpret_cast<const float *>(source + each * task.source_row + place));
        });
    for (int each = 0; each < Rows; ++each) {
        auto *target = reinterpret_cast<float *>(task.target + (row + each) * task.target_row);
        const float sum = sum_of(sums[each][0] + sums[each][1]);
        target[column] = task.bias == nullptr ? sum : sum + task.bias[column];
    }
}

template <class Coding> void multiply_few(const BlockTask &task, const RowUnit &unit) {
    for (int64_t column = task.first_column; column < task.column_end; ++column) {
        int64_t row = 0;
        for (; row + 4 <= task.rows; row += 4)
            multiply_column<4, Coding>(task, unit, row, column);
        if (task.rows - row >= 2) {
            multiply_column<2, Coding>(task, unit, row, column);
            row += 2;
        }
        if (row < task.rows)
            multiply_column<1, Coding>(task, unit, row, column);
    }
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
                Coding::decode(from, [&](int64_t element, Vector value) __attribute__((
                                         always_inline)) { store(to + first + element, value); });
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
    with_code(task.type,
              [&]<class Coding>(Coding) { multiply_few<Coding>(task.block, row_unit(task.type)); });
}

void multiply_encoded_rows(const EncodedTask &task) {
    with_code(task.type, [&]<class Coding>(Coding) {
        multiply_many<Coding>(task.block, row_unit(task.type));
    });
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
