/// Products of many rows of float32 by quantized blocks: panels are unpacked once for all rows.
/// Included by loops that are compiled once for each instruction set.
#pragma once

#include "block_columns.hpp"
#include "block_panel.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Unpacks a vector of columns, a word of each at a time.
template <int Bits> class Unpacking {
  public:
    Unpacking(const BlockTask &task, const Decoder<Bits> &decoder, int64_t column)
        : columns_(task, decoder, column), is_by_row_(decoder.is_by_row),
          flip_(decoder.sign == 0 ? kFirstBits<Bits> : 0) {
        while (int64_t{1} << shift_ < task.format.block)
            ++shift_;
    }

    /// Writes elements from `deep` on, whole words of them, a vector every `kPanel` floats.
    void unpack(int64_t deep, int64_t depth, float *to) {
        const int64_t count = (depth + kPerWord - 1) / kPerWord;
        float words[kBlockDepth / kPerWord * kWidth];
        columns_.words(deep, count, words);
        for (int64_t word = 0; word < count; ++word, to += kPerWord * kPanel) {
            find((deep + word * kPerWord) >> shift_);
            unpack_word(reinterpret_cast<Ints>(load(words + word * kWidth)), to);
        }
    }

  private:
    static constexpr int kPerWord = ColumnLanes<Bits>::kPerWord;

    void unpack_word(Ints packed, float *to) const {
        constexpr int kRest = 32 - Bits;
        // Natural numbers less the middle are these with the first bit inverted, read with a sign.
        const Ints quants = packed ^ flip_;
        const Vector zero = zero_, scale = scale_;
#pragma GCC unroll 16
        for (int part = 0; part < kPerWord; ++part) {
            const Ints quant = (quants << (kRest - part * Bits)) >> kRest;
            store(to + part * kPanel, (floats_of(quant) + zero) * scale);
        }
    }

    /// Finds the columns' scales and zero points of a block.
    void find(int64_t block) {
        if (is_by_row_)
            block = 0;
        if (block == block_)
            return;
        const int64_t first = block / kWidth * kWidth;
        if (first != first_)
            columns_.parameters(first, scales_, zeros_);
        first_ = first;
        scale_ = load(scales_ + (block - first) * kWidth);
        zero_ = load(zeros_ + (block - first) * kWidth);
        block_ = block;
    }

    ColumnLanes<Bits> columns_;
    bool is_by_row_;
    int flip_;
    int shift_ = 0; ///< a block has 2^shift elements
    int64_t first_ = -1, block_ = -1;
    Vector scale_{}, zero_{}; ///< of the block; the middle less the zero point
    float scales_[kWidth * kWidth], zeros_[kWidth * kWidth];
};

template <int Bits> void multiply_blocks(const BlockTask &task) {
    const Decoder<Bits> decoder(task.format);
    multiply_panels(task, [&](const PanelPart &part, float *panel, float *) {
        for (int64_t column = 0; column < part.columns; column += kWidth)
            Unpacking<Bits>(task, decoder, part.column + column)
                .unpack(part.deep, part.depth, panel + column);
    });
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
