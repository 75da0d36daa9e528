/// Keys and values as they are stored, widened to vectors of floats. Compiled once for each
/// instruction set.
#pragma once

#include "attention_task.hpp"
#include "kernels/vector_math.hpp"

#include <cstddef>

#if TIGHTSHIP_VECTOR_BYTES >= 32
#include <immintrin.h>
// The intrinsics of GCC 12 leave some results undefined at first, and GCC warns of them.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Reads `kWidth` items from `from`, or the first `count` with zeros behind them.
template <class Items> inline Items items_from(const char *from, int64_t count) {
    if (count >= kWidth) { // apart from the rest, so that items come straight to a register
        Items all;
        __builtin_memcpy(&all, from, sizeof all);
        return all;
    }
    Items some{};
    __builtin_memcpy(&some, from, static_cast<size_t>(count) * (sizeof some / kWidth));
    return some;
}

#if TIGHTSHIP_VECTOR_BYTES == 64

inline Vector widened_halves(const char *from, int64_t count) {
    return _mm512_cvtph_ps(items_from<__m256i>(from, count));
}

inline Vector widened_brains(const char *from, int64_t count) {
    const __m512i wide = _mm512_cvtepu16_epi32(items_from<__m256i>(from, count));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

inline Vector widened_bytes(const char *from, int64_t count) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(items_from<__m128i>(from, count)));
}

#elif TIGHTSHIP_VECTOR_BYTES == 32

inline Vector widened_halves(const char *from, int64_t count) {
    return _mm256_cvtph_ps(items_from<__m128i>(from, count));
}

inline Vector widened_brains(const char *from, int64_t count) {
    const __m256i wide = _mm256_cvtepu16_epi32(items_from<__m128i>(from, count));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

inline Vector widened_bytes(const char *from, int64_t count) {
    const __m128i eight = _mm_cvtsi64_si128(items_from<int64_t>(from, count));
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight));
}

#else

typedef uint16_t Halves __attribute__((vector_size(2 * kWidth)));
typedef int8_t Smalls __attribute__((vector_size(kWidth)));

/// Multiplies by 2^112, which changes the bias of the exponent, for denormals too.
inline Vector widened_halves(const char *from, int64_t count) {
    const Ints bits = __builtin_convertvector(items_from<Halves>(from, count), Ints);
    const Ints size = (bits & 0x7FFF) << 13;
    const Ints shifted = reinterpret_cast<Ints>(reinterpret_cast<Vector>(size) * 0x1p112F);
    const Ints found = size >= (0x7C00 << 13) ? size | 0x7F800000 : shifted;
    return reinterpret_cast<Vector>(found | (bits & 0x8000) << 16);
}

inline Vector widened_brains(const char *from, int64_t count) {
    const Ints bits = __builtin_convertvector(items_from<Halves>(from, count), Ints);
    return reinterpret_cast<Vector>(bits << 16);
}

inline Vector widened_bytes(const char *from, int64_t count) {
    return __builtin_convertvector(items_from<Smalls>(from, count), Vector);
}

#endif

/// Loads up to a vector of elements as they are stored, those of int8 without their scale.
template <RowType kType> inline Vector load_stored(const char *from, int64_t count) {
    if constexpr (kType == RowType::kFloat32)
        return load_some(reinterpret_cast<const float *>(from), count);
    else if constexpr (kType == RowType::kFloat16)
        return widened_halves(from, count);
    else if constexpr (kType == RowType::kBfloat16)
        return widened_brains(from, count);
    else
        return widened_bytes(from, count);
}

/// Returns the scale of a row of `width` elements.
template <RowType kType> inline float scale_of(const char *row, int64_t width) {
    float scale = 1.0F;
    if constexpr (kType == RowType::kInt8)
        __builtin_memcpy(&scale, row + width, sizeof scale);
    return scale;
}

/// Part of a matrix: `count` rows from `first` on, `columns` of `width` from `column` on.
struct Part {
    int64_t first, count, column, columns, width;
};

template <RowType kType>
void widen_part(const Rows &from, const Part &part, float *to, int64_t to_row) {
    constexpr int64_t kItem = element_bytes(kType);
    for (int64_t index = 0; index < part.count; ++index, to += to_row) {
        const char *row = from.data + (part.first + index) * from.row;
        const float scale = scale_of<kType>(row, part.width);
        for (int64_t column = 0; column < part.columns; column += kWidth) {
            const int64_t left = part.columns - column;
            const char *source = row + (part.column + column) * from.column;
            Vector some{};
            if (from.column == kItem)
                some = load_stored<kType>(source, left);
            else
                for (int64_t lane = 0; lane < left && lane < kWidth; ++lane)
                    some[lane] = load_stored<kType>(source + lane * from.column, 1)[0];
            store(to + column, kType == RowType::kInt8 ? some * scale : some);
        }
    }
}

/// Widens a part of a matrix to floats, `to_row` apart and with zeros behind to whole vectors.
inline void widen(const Rows &from, const Part &part, float *to, int64_t to_row) {
    constexpr void (*kWiden[])(const Rows &, const Part &, float *, int64_t) = {
        widen_part<RowType::kFloat32>, widen_part<RowType::kFloat16>,
        widen_part<RowType::kBfloat16>, widen_part<RowType::kInt8>};
    kWiden[static_cast<int>(from.type)](from, part, to, to_row);
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
