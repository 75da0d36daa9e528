/// Tiles of quantized blocks for the processor's matrix unit: 16 columns, unpacked once for many
/// rows of activations.
#pragma once

#include "block_rows.hpp"

namespace tightship::kernels::amx {

namespace {

constexpr int64_t kSide = 16; ///< rows and columns of a tile of sums
constexpr int64_t kUnit = 16; ///< bytes of a row's quants that are unpacked together
constexpr int64_t kStep = 64; ///< elements that the unit multiplies at once, at most

/// Returns the elements that are multiplied at once.
inline int64_t step_of(const BlockFormat &format) {
    return format.block < kStep ? format.block : kStep;
}

/// Sixteen rows of a matrix; behind the last, that one again.
struct Sixteen {
    Sixteen(const char *from, int64_t stride, int64_t count) {
        for (int64_t row = 0; row < kSide; ++row)
            rows[row] = from + (row < count ? row : count - 1) * stride;
    }

    const char *rows[kSide];
};

/// Transposes four dwords of each row, from `at` on.
inline void transpose(const Sixteen &from, int64_t at, __m512i (&to)[4]) {
    const auto four = [&](int first) {
        const auto part = [&](int row) {
            return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from.rows[row] + at));
        };
        __m512i result = _mm512_castsi128_si512(part(first));
        result = _mm512_inserti32x4(result, part(first + 4), 1);
        result = _mm512_inserti32x4(result, part(first + 8), 2);
        return _mm512_inserti32x4(result, part(first + 12), 3);
    };
    const __m512i a = four(0), b = four(1), c = four(2), d = four(3);
    const __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
    const __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
    to[0] = _mm512_unpacklo_epi64(ab_low, cd_low);
    to[1] = _mm512_unpackhi_epi64(ab_low, cd_low);
    to[2] = _mm512_unpacklo_epi64(ab_high, cd_high);
    to[3] = _mm512_unpackhi_epi64(ab_high, cd_high);
}

/// Unpacks 16 bytes of quants of each row to signed bytes, less the middle: the first elements of
/// all bytes, then their second ones and so on, four to a column. Returns the end.
template <int Bits>
char *unpack(const Sixteen &from, int64_t at, const Decoder<Bits> &decoder, char *to) {
    __m512i rows[4];
    transpose(from, at, rows);
    const __m512i mask = all_bytes(Decoder<Bits>::kMask), flip = all_bytes(decoder.sign);
    const __m512i middle = all_bytes(Decoder<Bits>::kMiddle);
    for (int part = 0; part < 8 / Bits; ++part)
        for (const __m512i &row : rows) {
            const __m512i natural =
                Bits == 8 ? flipped(row, flip) : part_of(row, part * Bits, mask, flip);
            _mm512_storeu_si512(to, _mm512_sub_epi8(natural, middle));
            to += kLine;
        }
    return to;
}

/// Transposes the scales of 16 rows, and scales times zero points if there are any:
/// [block][row].
template <int Bits>
void transpose_scales(const BlockTask &task, const Decoder<Bits> &decoder, int64_t column,
                      int64_t count, float *scales, float *zeros) {
    for (int64_t row = 0; row < kSide; ++row) {
        const int64_t real = column + (row < count ? row : count - 1);
        const char *from = task.matrix.scales + real * task.format.scales_row;
        const char *points = task.matrix.zeros + real * task.format.zeros_row;
        for (int64_t block = 0; block < task.blocks; block += kWidth) {
            const int64_t left = task.blocks - block;
            const int64_t some = left < kWidth ? left : kWidth;
            alignas(64) float given[kWidth], products[kWidth];
            const Vector scale = decoder.floats(from, block, some);
            store(given, scale);
            if (zeros != nullptr)
                store(products, scale * decoder.zero(points, block, some));
            for (int64_t index = 0; index < some; ++index) {
                scales[(block + index) * kSide + row] = given[index];
                if (zeros != nullptr)
                    zeros[(block + index) * kSide + row] = products[index];
            }
        }
    }
}

/// Completes stores to memory that a tile is read from, because the instructions of GCC 12 do not
/// name it.
inline void see_stores(const void *memory) {
    asm volatile("" : : "r"(memory) : "memory");
}

/// Tile configuration: four of sums, two of rows of `bytes`, two of columns.
struct Configuration {
    Configuration(int64_t bytes, int64_t column_rows) {
        for (int tile = 0; tile < 8; ++tile) {
            row_bytes[tile] = static_cast<uint16_t>(tile == 4 || tile == 5 ? bytes : kLine);
            rows[tile] = static_cast<uint8_t>(tile < 6 ? kSide : column_rows);
        }
    }

    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

/// Writes the sums of sixteen rows, as far as the task has them.
inline void write(const BlockTask &task, int64_t row, int64_t column, const Vector (&sums)[kSide]) {
    const int64_t count = task.column_end - column;
    const Vector bias = task.bias == nullptr ? Vector{} : load_some(task.bias + column, count);
    for (int64_t line = 0; line < kSide && row + line < task.rows; ++line) {
        auto *target = reinterpret_cast<float *>(task.target + (row + line) * task.target_row);
        store_some(target + column, sums[line] + bias, count);
    }
}

} // namespace

} // namespace tightship::kernels::amx
