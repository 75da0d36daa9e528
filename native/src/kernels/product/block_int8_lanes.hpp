/// Vectors of products of activations rounded to int8, and the order in which sums are added.
/// Included by loops that are compiled once for each instruction set.
#pragma once

#include "block_rows.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int64_t kChunk = 16; ///< bytes of a column whose products a lane sums

/// True if quants of 8 bits are multiplied as signed numbers: sums of two products of unsigned
/// ones exceed 16 bits.
template <int Bits> constexpr bool kIsCentred = Bits == 8 && !kHasDot;

/// Returns elements of a line: those of the bytes' first bits, or of the next ones and so on.
template <int Bits> Bytes part_of_line(Bytes packed, int part, int sign) {
    if constexpr (Bits == 8)
        return flipped(packed, all_bytes(kIsCentred<8> ? sign ^ 0x80 : sign));
    return part_of(packed, part * Bits, all_bytes(Decoder<Bits>::kMask), all_bytes(sign));
}

/// Loads a vector into a register, where GCC would load it anew for each column.
inline Bytes once(const char *from) {
    Bytes some = load_bytes(from, kLine);
    asm("" : "+v"(some));
    return some;
}

/// Dot products of four bytes in each lane, one added to another. 16 bits hold the sums of pairs of
/// up to eight additions of less than 8 bits.
template <int Bits> struct LaneDots {
    void add(Bytes quants, Bytes given) {
        if constexpr (Bits < 8 && !kHasDot)
            sums = add_shorts(sums, pairs_of(quants, given));
        else if constexpr (kIsCentred<Bits>)
            sums = add_dots(sums, magnitudes(quants), signed_by(given, quants));
        else
            sums = add_dots(sums, quants, given);
    }

    /// Returns the sums of words, added to `start`.
    Ints sums_from(Bytes start) const {
        if constexpr (Bits < 8 && !kHasDot)
            return reinterpret_cast<Ints>(add_pairs(start, sums));
        return reinterpret_cast<Ints>(sums) + reinterpret_cast<Ints>(start);
    }

    Bytes sums{};
};

/// Returns the sums of four words, those of 16 bytes, in each of their lanes.
inline Ints chunk_sums(Ints dots) {
    dots += swapped_neighbours(dots);
    return dots + swapped_pairs(dots);
}

/// Returns the lanes that a line has in four transposed ones: one of each 16 bytes.
inline Ints lanes_of_line(int line) {
    return (lane_numbers() & 3) == line;
}

#ifdef __AVX512VNNI__

constexpr bool kHasHalfLines = true;

/// Adds the lanes of each of some vectors, whose lanes have sums of chunks: the words of four
/// chunks, one of each 16 bytes, then those of the next ones. A loop over chunks can add so.
template <int Count>
[[gnu::always_inline]] inline void add_chunks(const Vector (&from)[Count], float *to) {
    if constexpr (Count < 4) {
        for (int each = 0; each < Count; ++each) {
            const __m512 some = from[each];
            const Four sums =
                Four(_mm512_castps512_ps128(some)) + Four(_mm512_extractf32x4_ps(some, 1)) +
                Four(_mm512_extractf32x4_ps(some, 2)) + Four(_mm512_extractf32x4_ps(some, 3));
            to[each] = sums[0] + sums[1] + sums[2] + sums[3];
        }
        return;
    }
    static_assert(Count < 4 || Count % 4 == 0);
    for (int at = 0; at < Count; at += 4) {
        const Vector *four = from + at;
        const __m512 low = _mm512_shuffle_f32x4(four[0], four[1], 0x44),
                     low2 = _mm512_shuffle_f32x4(four[2], four[3], 0x44),
                     high = _mm512_shuffle_f32x4(four[0], four[1], 0xEE),
                     high2 = _mm512_shuffle_f32x4(four[2], four[3], 0xEE);
        const Vector first = _mm512_shuffle_f32x4(low, low2, 0x88),
                     second = _mm512_shuffle_f32x4(low, low2, 0xDD),
                     third = _mm512_shuffle_f32x4(high, high2, 0x88),
                     fourth = _mm512_shuffle_f32x4(high, high2, 0xDD);
        const Vector sums = first + second + third + fourth; // each 16 bytes: of one of the vectors
        const Vector totals = sums + Vector(_mm512_permute_ps(sums, 1)) +
                              Vector(_mm512_permute_ps(sums, 2)) +
                              Vector(_mm512_permute_ps(sums, 3));
        const __m512i firsts = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        const __m512 found = _mm512_permutexvar_ps(firsts, totals);
        __builtin_memcpy(to + at, &found, 4 * sizeof(float));
    }
}

/// Halves of lines of four columns: each vector has those of two columns.
template <int Bits> class HalfLines {
  public:
    HalfLines(const char *const (&quants)[4], int64_t at, int64_t count, int sign) {
        const auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
        const auto half = [&](int column) {
            return _mm256_maskz_loadu_epi8(mask, quants[column] + at);
        };
#pragma GCC unroll 2
        for (int pair = 0; pair < 2; ++pair) {
            const Bytes both =
                _mm512_inserti64x4(_mm512_castsi256_si512(half(2 * pair)), half(2 * pair + 1), 1);
#pragma GCC unroll 4
            for (int part = 0; part < kParts; ++part)
                some_[pair][part] = part_of_line<Bits>(both, part, sign);
        }
    }

    /// Returns the dot products of chunks with a line of activations: lanes 0 and 4 those of the
    /// first column, 8 and 12 of the second one, 1, 5, 9 and 13 of the next ones.
    Vector dots(const char *line) const {
        const auto given = [&](int part) {
            return _mm512_broadcast_i64x4(
                _mm256_loadu_si256(reinterpret_cast<const __m256i *>(line + part * kLine)));
        };
        Bytes sums[2] = {given(kParts), given(kParts)};
#pragma GCC unroll 4
        for (int part = 0; part < kParts; ++part)
            for (int pair = 0; pair < 2; ++pair)
                sums[pair] = add_dots(sums[pair], some_[pair][part], given(part));
        const Ints low = reinterpret_cast<Ints>(_mm512_unpacklo_epi32(sums[0], sums[1])),
                   high = reinterpret_cast<Ints>(_mm512_unpackhi_epi32(sums[0], sums[1]));
        return floats_of(low + high + swapped_pairs(low + high));
    }

    /// Adds a column's dot products times factors to the lanes of chunks of a line.
    static Vector added(Vector sums, Vector dots, Vector factors, int column, int line) {
        const Ints from = (lane_numbers() & 4) + 8 * (column & 1) + (column >> 1);
        const auto lanes = static_cast<__mmask16>(0x11U << line);
        return _mm512_mask3_fmadd_ps(spread(dots, from), factors, sums, lanes);
    }

  private:
    static constexpr int kParts = 8 / Bits;

    Bytes some_[2][kParts];
};

#else

constexpr bool kHasHalfLines = false;
template <int Bits> struct HalfLines;

template <int Count>
[[gnu::always_inline]] inline void add_chunks(const Vector (&from)[Count], float *to) {
    add_lanes(from, to);
}

#endif

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
