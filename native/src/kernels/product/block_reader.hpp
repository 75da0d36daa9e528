/// Reading of quantized blocks element by element, wherever they lie.
#pragma once

#include "block_task.hpp"

#include "tightship/kernels/element_type.hpp"
#include "tightship/kernels/item.hpp"

namespace tightship::kernels {

/// One row of a matrix. Quants and zero points are as unsigned integers, so that the middle is
/// always 2^(bits-1): the sign bit of a signed one is inverted.
class BlockRow {
  public:
    BlockRow(const BlockFormat &format, const BlockMatrix &matrix, int64_t row)
        : format_(format), quants_(matrix.quants + row * format.quants_row),
          scales_(matrix.scales + row * format.scales_row),
          zeros_(matrix.zeros + row * format.zeros_row), middle_(1 << (format.bits - 1)) {}

    /// Writes the quants of a block's first `count` elements, less the middle.
    template <class Element> void read(int64_t block, int64_t count, Element *to) const {
        const auto *from =
            reinterpret_cast<const uint8_t *>(quants_ + block * format_.quants_block);
        if (format_.bits == 8)
            unpack<8>(from, count, to);
        else if (format_.bits == 4)
            unpack<4>(from, count, to);
        else
            unpack<2>(from, count, to);
    }

    float scale(int64_t block) const { return float_at(scales_ + block * format_.scales_block); }

    /// Returns the middle less a block's zero point.
    float zero(int64_t block) const {
        if (format_.zeros == BlockZeros::kMiddle)
            return 0.0F;
        if (format_.zeros == BlockZeros::kFloats) {
            const float zero = float_at(zeros_ + block * format_.zeros_block);
            return (format_.is_signed ? 0.0F : static_cast<float>(middle_)) - zero;
        }
        const int64_t bit = is_by_row(format_) ? 0 : block * format_.bits;
        const int packed = static_cast<uint8_t>(zeros_[bit / 8]) >> bit % 8;
        return static_cast<float>(middle_ - ((packed & (2 * middle_ - 1)) ^ sign()));
    }

  private:
    int sign() const { return format_.is_signed ? middle_ : 0; }

    float float_at(const char *from) const {
        return format_.scale == BlockFloat::kFloat16 ? widened(load<Float16>(from))
                                                     : load<float>(from);
    }

    template <int Bits, class Element>
    void unpack(const uint8_t *from, int64_t count, Element *to) const {
        constexpr int kPerByte = 8 / Bits;
        const int flipped = sign();
        for (int64_t index = 0; index < count; ++index) {
            const int quant = from[index / kPerByte] >> index % kPerByte * Bits & ((1 << Bits) - 1);
            to[index] = static_cast<Element>((quant ^ flipped) - (1 << (Bits - 1)));
        }
    }

    const BlockFormat &format_;
    const char *quants_, *scales_, *zeros_;
    int middle_;
};

/// Writes the first `depth` elements of a row.
inline void read_block_row(const BlockFormat &format, const BlockMatrix &matrix, int64_t row,
                           int64_t depth, float *to) {
    const BlockRow from(format, matrix, row);
    for (int64_t first = 0; first < depth; first += format.block) {
        const int64_t block = first / format.block;
        const int64_t count = depth - first < format.block ? depth - first : format.block;
        from.read(block, count, to + first);
        const float scale = from.scale(block), zero = from.zero(block);
        for (int64_t index = first; index < first + count; ++index)
            to[index] = (to[index] + zero) * scale;
    }
}

} // namespace tightship::kernels
