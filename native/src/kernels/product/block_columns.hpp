/// Columns of a product by quantized blocks, side by side in the lanes of a vector. Included by
/// loops that are compiled once for each instruction set.
#pragma once

#include "block_rows.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int64_t kWords = 4;   ///< of each column that are transposed together
constexpr int64_t kAhead = 256; ///< bytes of a column's quants that are fetched ahead

/// Parts of `kWidth` rows of the matrix; behind the last column of a task, that one again.
template <int Bits> class ColumnLanes {
  public:
    static constexpr int kPerWord = 32 / Bits; ///< elements of 32 bits, all of one block

    ColumnLanes(const BlockTask &task, const Decoder<Bits> &decoder, int64_t column)
        : decoder_(decoder), blocks_(task.blocks) {
        const BlockFormat &format = task.format;
        for (int64_t lane = 0; lane < kWidth; ++lane) {
            const int64_t real =
                column + lane < task.column_end ? column + lane : task.column_end - 1;
            quants_[lane] = task.matrix.quants + real * format.quants_row;
            scales_[lane] = task.matrix.scales + real * format.scales_row;
            zeros_[lane] = task.matrix.zeros + real * format.zeros_row;
        }
    }

    /// Transposes `count` words from an element on: [word][column]. `to` has room for whole
    /// `kWords`.
    void words(int64_t element, int64_t count, float *to) const {
        for (int64_t word = 0; word < count; word += kWords)
            transpose((element + word * kPerWord) * Bits / 8, count - word, to + word * kWidth);
    }

    /// Reads scales, and middles less zero points, of `kWidth` blocks: [block][column]. Without
    /// zero points, `to_zeros` may be null.
    void parameters(int64_t first, float *to_scales, float *to_zeros) const {
        const int64_t left = blocks_ - first, count = left < kWidth ? left : kWidth;
        const bool has_zeros = decoder_.zeros != BlockZeros::kMiddle;
#if TIGHTSHIP_VECTOR_BYTES == 64
        if (!has_zeros && decoder_.is_half && !decoder_.is_by_row) {
            for (int64_t block = 0; to_zeros != nullptr && block < kWidth; ++block)
                store(to_zeros + block * kWidth, Vector{});
            return half_scales(first, count, to_scales);
        }
#endif
        float scales[kWidth * kWidth], zeros[kWidth * kWidth] = {};
        for (int64_t lane = 0; lane < kWidth; ++lane) {
            store(scales + lane * kWidth, decoder_.floats(scales_[lane], first, count));
            if (has_zeros)
                store(zeros + lane * kWidth, decoder_.zero(zeros_[lane], first, count));
        }
        for (int64_t lane = 0; lane < kWidth; lane += 4)
            for (int64_t block = 0; block < kWidth; block += 4) {
                const int64_t from = lane * kWidth + block, to = block * kWidth + lane;
                transpose_four(scales + from, kWidth, to_scales + to, kWidth);
                if (to_zeros != nullptr)
                    transpose_four(zeros + from, kWidth, to_zeros + to, kWidth);
            }
    }

  private:
#if TIGHTSHIP_VECTOR_BYTES == 64
    /// Reads scales of halves: [block][column].
    void half_scales(int64_t first, int64_t count, float *to) const {
        if (count == 2)
            return two_scales(first, to);
        const auto mask = static_cast<__mmask16>(count >= kWidth ? 0xFFFF : (1U << count) - 1U);
        const auto halves = [&](int lane) {
            return _mm256_maskz_loadu_epi16(mask, scales_[lane] + 2 * first);
        };
        Bytes pairs[8]; // each 16 bytes: a pair of columns of four blocks
#pragma GCC unroll 4
        for (int pair = 0; pair < 4; ++pair) {
            Bytes columns[2]; // one, and that eight behind it
#pragma GCC unroll 2
            for (int each = 0; each < 2; ++each)
                columns[each] = _mm512_inserti64x4(_mm512_castsi256_si512(halves(2 * pair + each)),
                                                   halves(2 * pair + each + 8), 1);
            pairs[pair] = _mm512_unpacklo_epi16(columns[0], columns[1]);
            pairs[pair + 4] = _mm512_unpackhi_epi16(columns[0], columns[1]);
        }
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
            Bytes(&four)[4] = *reinterpret_cast<Bytes(*)[4]>(pairs + 4 * half);
            transpose_words(four); // each 16 bytes: eight columns of a block
#pragma GCC unroll 4
            for (int each = 0; each < 4; ++each) {
                const Bytes both = _mm512_shuffle_i64x2(four[each], four[each], 0xD8);
                const int64_t block = 4 * half + each;
                store(to + block * kWidth, _mm512_cvtph_ps(_mm512_castsi512_si256(both)));
                store(to + (block + 8) * kWidth,
                      _mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1)));
            }
        }
    }

    /// Reads the scales of two blocks, which are a word of each column.
    void two_scales(int64_t first, float *to) const {
        const auto four = [&](int lane) {
            int words[4];
            for (int each = 0; each < 4; ++each)
                __builtin_memcpy(words + each, scales_[lane + each] + 2 * first, sizeof *words);
            return _mm_setr_epi32(words[0], words[1], words[2], words[3]);
        };
        const __m512i half = _mm512_inserti32x4(_mm512_castsi128_si512(four(0)), four(4), 1);
        const __m512i both = _mm512_inserti32x4(_mm512_inserti32x4(half, four(8), 2), four(12), 3);
        store(to, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(both)));
        store(to + kWidth, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(both, 16))));
    }
#endif

    void transpose(int64_t at, int64_t count, float *to) const {
        for (int64_t lane = 0; lane < kWidth; lane += 4) {
            Four words[4] = {};
            for (int64_t each = 0; each < 4; ++each) {
                const char *from = quants_[lane + each] + at;
                __builtin_prefetch(from + kAhead);
                if (count >= kWords)
                    words[each] = load_four(from);
                else
                    __builtin_memcpy(&words[each], from, static_cast<size_t>(count) * 4);
            }
            transpose_four(words[0], words[1], words[2], words[3], to + lane, kWidth);
        }
    }

    const Decoder<Bits> &decoder_;
    const char *quants_[kWidth], *scales_[kWidth], *zeros_[kWidth];
    int64_t blocks_;
};

/// First bit of each integer of a word.
template <int Bits>
constexpr int kFirstBits = static_cast<int>(Bits == 8   ? 0x80808080U
                                            : Bits == 4 ? 0x88888888U
                                                        : 0xAAAAAAAAU);

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
