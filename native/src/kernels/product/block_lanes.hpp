/// Vectors of quants and of blocks' scales. Included by loops that are compiled once for each
/// instruction set.
#pragma once

#include "block_task.hpp"
#include "kernels/tile.hpp"

#include <immintrin.h>

// The intrinsics of GCC 12 leave some results undefined at first, and GCC warns of them.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int64_t kLine = TIGHTSHIP_VECTOR_BYTES; ///< bytes of a vector

#if TIGHTSHIP_VECTOR_BYTES == 64

using Bytes = __m512i;

inline Bytes all_bytes(int value) {
    return _mm512_set1_epi8(static_cast<char>(value));
}

/// Loads the first `count` bytes, with zeros behind them.
inline Bytes load_bytes(const char *from, int64_t count) {
    if (count >= kLine)
        return _mm512_loadu_si512(from);
    return _mm512_maskz_loadu_epi8((uint64_t{1} << count) - 1, from);
}

inline Vector load_halves(const char *from, int64_t count) {
    const auto mask = static_cast<__mmask16>(count >= kWidth ? 0xFFFF : (1U << count) - 1U);
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
}

/// Returns lane `index[lane]` of `from` in each lane.
inline Vector spread(Vector from, Ints index) {
    return _mm512_permutexvar_ps(reinterpret_cast<__m512i>(index), from);
}

inline Ints rounded(Vector x) {
    return reinterpret_cast<Ints>(_mm512_cvtps_epi32(x));
}

inline Vector floats_of(Ints x) {
    return _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(x));
}

inline float widened(uint16_t half) {
    return _mm512_cvtss_f32(_mm512_cvtph_ps(_mm256_castsi128_si256(_mm_cvtsi32_si128(half))));
}

/// Loads a vector's number of bytes as natural numbers. (GCC 12 converts vectors of bytes by the
/// built-in function one element at a time.)
inline Ints naturals(const char *from) {
    return reinterpret_cast<Ints>(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from))));
}

/// Stores the lowest byte of each integer.
inline void store_bytes(char *to, Ints x) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to),
                     _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(x)));
}

inline float sum_of(Vector x) {
    return _mm512_reduce_add_ps(x);
}

/// Returns `bits` of each byte from bit `shift` on, inverted where `flip` is set.
inline Bytes part_of(Bytes packed, int shift, Bytes mask, Bytes flip) {
    constexpr int kAndThenXor = 0x6A; // (a & b) ^ c of a, b, c = 0xF0, 0xCC, 0xAA
    return _mm512_ternarylogic_epi32(_mm512_srli_epi16(packed, static_cast<unsigned>(shift)), mask,
                                     flip, kAndThenXor);
}

inline Bytes flipped(Bytes x, Bytes flip) {
    return _mm512_xor_si512(x, flip);
}

/// Returns sums of two products of bytes, of 16 bits.
inline Bytes pairs_of(Bytes naturals, Bytes integers) {
    return _mm512_maddubs_epi16(naturals, integers);
}

inline Bytes add_shorts(Bytes left, Bytes right) {
    return _mm512_add_epi16(left, right);
}

/// Returns sums of two products of 16 bits.
inline Bytes pairs_of_shorts(Bytes left, Bytes right) {
    return _mm512_madd_epi16(left, right);
}

/// Returns the first byte of each 16 bits, with its sign.
inline Bytes first_bytes(Bytes x) {
    return _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8);
}

/// Returns the second byte of each 16 bits, with its sign.
inline Bytes second_bytes(Bytes x) {
    return _mm512_srai_epi16(x, 8);
}

/// Adds two numbers of 16 bits to each sum.
inline Bytes add_pairs(Bytes sums, Bytes pairs) {
    return _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

#ifdef __AVX512VNNI__

constexpr bool kHasDot = true;

inline Bytes add_dots(Bytes sums, Bytes naturals, Bytes integers) {
    return _mm512_dpbusd_epi32(sums, naturals, integers);
}

#else

constexpr bool kHasDot = false;

inline Bytes add_dots(Bytes sums, Bytes naturals, Bytes integers) {
    return add_pairs(sums, pairs_of(naturals, integers));
}

#endif

inline Bytes magnitudes(Bytes x) {
    return _mm512_abs_epi8(x);
}

/// Transposes four rows of four words in each 16 bytes.
inline void transpose_words(Bytes (&x)[4]) {
    const Bytes low[] = {_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpacklo_epi32(x[2], x[3])};
    const Bytes high[] = {_mm512_unpackhi_epi32(x[0], x[1]), _mm512_unpackhi_epi32(x[2], x[3])};
    x[0] = _mm512_unpacklo_epi64(low[0], low[1]);
    x[1] = _mm512_unpackhi_epi64(low[0], low[1]);
    x[2] = _mm512_unpacklo_epi64(high[0], high[1]);
    x[3] = _mm512_unpackhi_epi64(high[0], high[1]);
}

inline Ints swapped_neighbours(Ints x) {
    return reinterpret_cast<Ints>(
        _mm512_shuffle_epi32(reinterpret_cast<__m512i>(x), _MM_PERM_CDAB));
}

inline Ints swapped_pairs(Ints x) {
    return reinterpret_cast<Ints>(
        _mm512_shuffle_epi32(reinterpret_cast<__m512i>(x), _MM_PERM_BADC));
}

/// Returns `x`, negated where `sign` is negative.
inline Bytes signed_by(Bytes x, Bytes sign) {
    return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(sign), Bytes{}, x);
}

#else

using Bytes = __m256i;

inline Bytes all_bytes(int value) {
    return _mm256_set1_epi8(static_cast<char>(value));
}

inline Bytes load_bytes(const char *from, int64_t count) {
    if (count >= kLine)
        return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
    Bytes result{};
    __builtin_memcpy(&result, from, static_cast<size_t>(count));
    return result;
}

inline Vector load_halves(const char *from, int64_t count) {
    if (count >= kWidth)
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from)));
    __m128i halves{};
    __builtin_memcpy(&halves, from, static_cast<size_t>(2 * count));
    return _mm256_cvtph_ps(halves);
}

inline Vector spread(Vector from, Ints index) {
    return _mm256_permutevar8x32_ps(from, reinterpret_cast<__m256i>(index));
}

inline Ints rounded(Vector x) {
    return reinterpret_cast<Ints>(_mm256_cvtps_epi32(x));
}

inline Vector floats_of(Ints x) {
    return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(x));
}

inline float widened(uint16_t half) {
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half)));
}

inline Ints naturals(const char *from) {
    return reinterpret_cast<Ints>(
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from))));
}

/// Stores integers of -128 to 127 as bytes.
inline void store_bytes(char *to, Ints x) {
    const auto wide = reinterpret_cast<__m256i>(x);
    const __m128i shorts =
        _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i *>(to), _mm_packs_epi16(shorts, shorts));
}

inline float sum_of(Vector x) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}

inline Bytes flipped(Bytes x, Bytes flip) {
    return _mm256_xor_si256(x, flip);
}

inline Bytes part_of(Bytes packed, int shift, Bytes mask, Bytes flip) {
    return flipped(_mm256_and_si256(_mm256_srli_epi16(packed, shift), mask), flip);
}

constexpr bool kHasDot = false;

inline Bytes pairs_of(Bytes naturals, Bytes integers) {
    return _mm256_maddubs_epi16(naturals, integers);
}

inline Bytes add_shorts(Bytes left, Bytes right) {
    return _mm256_add_epi16(left, right);
}

/// Returns sums of two products of 16 bits.
inline Bytes pairs_of_shorts(Bytes left, Bytes right) {
    return _mm256_madd_epi16(left, right);
}

/// Returns the first byte of each 16 bits, with its sign.
inline Bytes first_bytes(Bytes x) {
    return _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
}

/// Returns the second byte of each 16 bits, with its sign.
inline Bytes second_bytes(Bytes x) {
    return _mm256_srai_epi16(x, 8);
}

inline Bytes add_pairs(Bytes sums, Bytes pairs) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

inline Bytes add_dots(Bytes sums, Bytes naturals, Bytes integers) {
    return add_pairs(sums, pairs_of(naturals, integers));
}

inline Bytes magnitudes(Bytes x) {
    return _mm256_abs_epi8(x);
}

inline void transpose_words(Bytes (&x)[4]) {
    const Bytes low[] = {_mm256_unpacklo_epi32(x[0], x[1]), _mm256_unpacklo_epi32(x[2], x[3])};
    const Bytes high[] = {_mm256_unpackhi_epi32(x[0], x[1]), _mm256_unpackhi_epi32(x[2], x[3])};
    x[0] = _mm256_unpacklo_epi64(low[0], low[1]);
    x[1] = _mm256_unpackhi_epi64(low[0], low[1]);
    x[2] = _mm256_unpacklo_epi64(high[0], high[1]);
    x[3] = _mm256_unpackhi_epi64(high[0], high[1]);
}

inline Ints swapped_neighbours(Ints x) {
    return reinterpret_cast<Ints>(_mm256_shuffle_epi32(reinterpret_cast<__m256i>(x), 0xB1));
}

inline Ints swapped_pairs(Ints x) {
    return reinterpret_cast<Ints>(_mm256_shuffle_epi32(reinterpret_cast<__m256i>(x), 0x4E));
}

inline Bytes signed_by(Bytes x, Bytes sign) {
    return _mm256_sign_epi8(x, sign);
}

#endif

/// Adds the lanes of each of some vectors. Lanes are added in the order of `sum_of`, those of all
/// vectors at once where there are as many as a tree of additions takes.
template <int Count>
[[gnu::always_inline]] inline void add_lanes(const Vector (&from)[Count], float *to) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    if constexpr (Count % 8 == 0 || Count == 4) {
        constexpr int kPairs = Count == 4 ? 2 : 4;
        const auto halves = [&](int at) {
            const Vector a = from[at], b = from[at + 1];
            return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44),
                                 _mm512_shuffle_f32x4(a, b, 0xEE));
        };
        const auto quarters = [&](int at) {
            const Vector a = halves(at), b = halves(at + 2);
            return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88),
                                 _mm512_shuffle_f32x4(a, b, 0xDD));
        };
        for (int at = 0; at < Count; at += 2 * kPairs) {
            const Vector a = quarters(at), b = kPairs == 2 ? a : quarters(at + 4);
            const Vector pairs =
                _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
            const __m512 sums = pairs + _mm512_movehdup_ps(pairs);
            const __m512i order =
                _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
            const __m256 found = _mm512_castps512_ps256(_mm512_permutexvar_ps(order, sums));
            __builtin_memcpy(to + at, &found, 2 * kPairs * sizeof(float));
        }
        return;
    }
#else
    if constexpr (Count % 4 == 0) {
        const auto halves = [&](int at) {
            const Vector a = from[at], b = from[at + 1];
            return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20),
                                 _mm256_permute2f128_ps(a, b, 0x31));
        };
        for (int at = 0; at < Count; at += 4) {
            const Vector a = halves(at), b = halves(at + 2);
            const Vector pairs =
                _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
            const __m256 sums = pairs + _mm256_movehdup_ps(pairs);
            const __m256i order = _mm256_setr_epi32(0, 4, 2, 6, 0, 0, 0, 0);
            _mm_storeu_ps(to + at, _mm256_castps256_ps128(_mm256_permutevar8x32_ps(sums, order)));
        }
        return;
    }
#endif
    for (int each = 0; each < Count; ++each)
        to[each] = sum_of(from[each]);
}

inline float half_of(const char *from) {
    uint16_t half;
    __builtin_memcpy(&half, from, sizeof half);
    return widened(half);
}

/// Widens two halves that lie together.
inline Four two_halves(const char *from) {
    int both;
    __builtin_memcpy(&both, from, sizeof both);
#if TIGHTSHIP_VECTOR_BYTES == 64
    return _mm_maskz_cvtph_ps(static_cast<__mmask8>(-1), _mm_cvtsi32_si128(both));
#else
    return _mm_cvtph_ps(_mm_cvtsi32_si128(both));
#endif
}

inline Ints lane_numbers() {
    Ints result{};
    for (int lane = 0; lane < kWidth; ++lane)
        result[lane] = lane;
    return result;
}

constexpr int kQuads = kWidth / 4; ///< chunks of 16 bytes in a vector
constexpr int64_t kFourLines = 4 * kLine;

/// Returns which chunk of 16 bytes of four vectors each lane has a word of, in each of them, once
/// these are transposed.
inline Ints chunks_of_lanes() {
    return (lane_numbers() & 3) * kQuads + (lane_numbers() >> 2);
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
