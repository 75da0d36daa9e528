/// Products of many rows of float32: weights become panels of float32 once for all rows. Included
/// by loops that are compiled once for each instruction set.
#pragma once

#include "block_rows.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Part of the columns of a task, and of their depth.
struct PanelPart {
    int64_t column, columns, deep, depth;
};

/// Scales and zero points of one column, a vector of blocks at a time.
template <int Bits> class ColumnScales {
  public:
    ColumnScales(const BlockTask &task, const Decoder<Bits> &decoder, int64_t column)
        : decoder_(decoder), strip_(task, column), blocks_(task.blocks) {}

    void find(int64_t block) {
        const int64_t first = block / kWidth * kWidth;
        if (first != first_) {
            const int64_t left = blocks_ - first, count = left < kWidth ? left : kWidth;
            store(scales_, decoder_.floats(strip_.scales[0], first, count));
            if (decoder_.zeros != BlockZeros::kMiddle)
                store(zeros_, decoder_.zero(strip_.zeros[0], first, count));
            first_ = first;
        }
        scale = scales_[block - first];
        zero = zeros_[block - first];
    }

    float scale = 0.0F, zero = 0.0F;

  private:
    const Decoder<Bits> &decoder_;
    Strip<Bits, 1> strip_;
    int64_t blocks_, first_ = -1;
    float scales_[kWidth], zeros_[kWidth] = {};
};

/// Dequantizes a part: [column][kBlockDepth].
template <int Bits>
void dequantize(const BlockTask &task, const Decoder<Bits> &decoder, const PanelPart &part,
                float *to) {
    for (int64_t column = part.column; column < part.column + part.columns; ++column) {
        const char *quants = task.matrix.quants + column * task.format.quants_row;
        ColumnScales<Bits> at(task, decoder, column);
        for (int64_t index = 0; index < part.depth; index += kWidth) {
            const int64_t element = part.deep + index;
            at.find(element / task.format.block);
            const Ints quant = decoder.integers(quants + element * Bits / 8, kWidth);
            const Vector value = floats_of((quant ^ decoder.sign) - Decoder<Bits>::kMiddle);
            store(to + index, (value + at.zero) * at.scale);
        }
        to += kBlockDepth;
    }
}

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

/// Multiplies by panels of float32; `fill(part, to)` makes a part: [column][kBlockDepth].
template <class Fill> void multiply_panels(const BlockTask &task, const Fill &fill) {
    auto *values = reinterpret_cast<float *>(task.scratch);
    float *panel = values + kPanel * kBlockDepth;
    const auto *source = reinterpret_cast<const float *>(task.source);
    const int64_t source_row = task.source_row / 4;
    for (int64_t column = task.first_column; column < task.column_end; column += kPanel) {
        const int64_t left = task.column_end - column;
        PanelPart part{column, left < kPanel ? left : kPanel, 0, 0};
        start_sums(task, part);
        for (; part.deep < task.depth; part.deep += kBlockDepth) {
            const int64_t deep = task.depth - part.deep;
            part.depth = deep < kBlockDepth ? deep : kBlockDepth;
            fill(part, values);
            pack_panel(values, 1, kBlockDepth, part.depth, part.columns, panel);
            for (int64_t row = 0; row < task.rows; row += kTileRows)
                add_rows(task, part, {source + row * source_row + part.deep, source_row, 1},
                         {panel, kPanel}, row,
                         task.rows - row < kTileRows ? task.rows - row : kTileRows);
        }
    }
}

template <int Bits> void multiply_blocks(const BlockTask &task) {
    const Decoder<Bits> decoder(task.format);
    multiply_panels(
        task, [&](const PanelPart &part, float *to) { dequantize<Bits>(task, decoder, part, to); });
}

} // namespace

void multiply_exact_rows(const BlockTask &task) {
    if (task.format.bits == 8)
        multiply_blocks<8>(task);
    else if (task.format.bits == 4)
        multiply_blocks<4>(task);
    else
        multiply_blocks<2>(task);
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
