/// Products of many rows of float32: weights become panels of float32 once for all rows. Included
/// by loops that are compiled once for each instruction set.
#pragma once

#include "block_lanes.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Part of the columns of a task, and of their depth.
struct PanelPart {
    int64_t column, columns, deep, depth;
};

/// Target of a task as rows of floats.
struct Results {
    explicit Results(const BlockTask &task)
        : data(reinterpret_cast<float *>(task.target)), row(task.target_row / 4) {}

    float *data;
    int64_t row;
};

void start_sums(const BlockTask &task, const PanelPart &part) {
    const Results results(task);
    for (int64_t row = 0; row < task.rows; ++row)
        for (int64_t column = part.column; column < part.column + part.columns; ++column)
            results.data[row * results.row + column] =
                task.bias == nullptr ? 0.0F : task.bias[column];
}

/// Adds the products of some rows. Whole vectors are added in place; others in a copy, because
/// tiles write whole vectors.
void add_rows(const BlockTask &task, const PanelPart &part, const Left &left, const Right &right,
              int64_t row, int64_t rows) {
    static constexpr float kOnes[kTileRows] = {1, 1, 1, 1, 1, 1};
    const Results results(task);
    float *target = results.data + row * results.row + part.column;
    const Tile tile = tile_of(rows, (part.columns + kWidth - 1) / kWidth);
    if (part.columns % kWidth == 0)
        return tile(left, right, part.depth, {target, results.row, kOnes, nullptr});
    float copy[kTileRows * kPanel] = {};
    const auto bytes = static_cast<size_t>(part.columns) * sizeof(float);
    for (int64_t each = 0; each < rows; ++each)
        __builtin_memcpy(copy + each * kPanel, target + each * results.row, bytes);
    tile(left, right, part.depth, {copy, kPanel, kOnes, nullptr});
    for (int64_t each = 0; each < rows; ++each)
        __builtin_memcpy(target + each * results.row, copy + each * kPanel, bytes);
}

/// Multiplies by panels of float32. `fill(part, panel, room)` makes one of a part, [depth][kPanel],
/// whole vectors of columns; `room` is memory for as many elements.
template <class Fill> void multiply_panels(const BlockTask &task, const Fill &fill) {
    auto *panel = reinterpret_cast<float *>(task.scratch);
    float *room = panel + kPanel * kBlockDepth;
    const auto *source = reinterpret_cast<const float *>(task.source);
    const int64_t source_row = task.source_row / 4;
    for (int64_t column = task.first_column; column < task.column_end; column += kPanel) {
        const int64_t left = task.column_end - column;
        PanelPart part{column, left < kPanel ? left : kPanel, 0, 0};
        start_sums(task, part);
        for (; part.deep < task.depth; part.deep += kBlockDepth) {
            const int64_t deep = task.depth - part.deep;
            part.depth = deep < kBlockDepth ? deep : kBlockDepth;
            fill(part, panel, room);
            for (int64_t row = 0; row < task.rows; row += kTileRows)
                add_rows(task, part, {source + row * source_row + part.deep, source_row, 1},
                         {panel, kPanel}, row,
                         task.rows - row < kTileRows ? task.rows - row : kTileRows);
        }
    }
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
