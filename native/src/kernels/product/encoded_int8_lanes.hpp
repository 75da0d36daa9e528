/// Decoders of encoded rows to integers, a vector of bytes at a time. Included by loops that are
/// compiled once for each instruction set.
///
/// A step of a row has two vectors of quants as natural numbers, in chunks of 16 elements that lie
/// one after another in the row. Four lanes of a sum belong to a chunk.
#pragma once

#include "block_lanes.hpp"
#include "encoded_scales.hpp"
#include "encoded_task.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

#if TIGHTSHIP_VECTOR_BYTES == 64

inline Bytes in_quads(__m128i a, __m128i b, __m128i c, __m128i d) {
    const __m512i two = _mm512_inserti32x4(_mm512_castsi128_si512(a), b, 1);
    return _mm512_inserti32x4(_mm512_inserti32x4(two, c, 2), d, 3);
}

/// Returns a 16 in each byte whose bit of `bits` is set.
inline Bytes sixteens(Bytes bits, Bytes mask) {
    return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(bits, mask), all_bytes(16));
}

inline Bytes shuffled(Bytes x, Bytes order) {
    return _mm512_shuffle_epi8(x, order);
}

/// Returns `x` with lane `step` of each four from `y`.
inline Vector with_lanes(Vector x, Vector y, int step) {
    return _mm512_mask_mov_ps(x, static_cast<__mmask16>(0x1111 << step), y);
}

inline Bytes both_of(Bytes x, Bytes y) {
    return _mm512_and_si512(x, y);
}

inline Bytes either_of(Bytes x, Bytes y) {
    return _mm512_or_si512(x, y);
}

template <int Shift> Bytes right(Bytes x) {
    return _mm512_srli_epi16(x, Shift);
}

template <int Shift> Bytes left(Bytes x) {
    return _mm512_slli_epi16(x, Shift);
}

inline Bytes repeated(__m128i x) {
    return _mm512_broadcast_i32x4(x);
}

#else

inline Bytes in_quads(__m128i a, __m128i b) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

inline Bytes sixteens(Bytes bits, Bytes mask) {
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bits, mask), mask), all_bytes(16));
}

inline Bytes shuffled(Bytes x, Bytes order) {
    return _mm256_shuffle_epi8(x, order);
}

inline Vector with_lanes(Vector x, Vector y, int step) {
    return (lane_numbers() & 3) == step ? y : x;
}

inline Bytes both_of(Bytes x, Bytes y) {
    return _mm256_and_si256(x, y);
}

inline Bytes either_of(Bytes x, Bytes y) {
    return _mm256_or_si256(x, y);
}

template <int Shift> Bytes right(Bytes x) {
    return _mm256_srli_epi16(x, Shift);
}

template <int Shift> Bytes left(Bytes x) {
    return _mm256_slli_epi16(x, Shift);
}

inline Bytes repeated(__m128i x) {
    return _mm256_broadcastsi128_si256(x);
}

#endif

inline __m128i load_16(const char *from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
}

inline int dword_at(const char *from) {
    int word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

inline Bytes low_halves(Bytes x) {
    return both_of(x, all_bytes(15));
}

inline Bytes high_halves(Bytes x) {
    return both_of(right<4>(x), all_bytes(15));
}

/// Returns lane / 4 times `times`, plus `first`.
inline Ints quad_numbers(int times, int first) {
    return (lane_numbers() >> 2) * times + first;
}

/// Quants of a step of one row, with the scale and the least number of each lane; both vectors have
/// the same ones where `kAlike`.
template <bool kAlike> struct Quants {
    static constexpr int kScales = kAlike ? 1 : 2;

    Bytes bytes[2];
    Vector scales[kScales], least[kScales];
};

template <RowCode Type> struct Int8Code;

/// Blocks of 32, as many as a vector has chunks; behind the last one of a row that one again.
template <RowCode Type> struct Int8Of32 {
    static constexpr bool kFifth = Type != RowCode::kQ4_1, kHasLeast = Type != RowCode::kQ5_0;
    static constexpr int64_t kGroup = 32, kUnits = kQuads, kSteps = 1;
    static constexpr int64_t kBytes = row_unit(Type).bytes;
    using Step = Quants<true>;

    /// Returns the first element of a chunk of a vector.
    static constexpr int64_t chunk(int64_t, int vector, int quad) {
        return quad * 32 + vector * 16;
    }

    Int8Of32(const char *from, int64_t units) {
        for (int quad = 0; quad < kQuads; ++quad)
            unit[quad] = from + (quad < units ? quad : units - 1) * kBytes;
    }

    Step decode(int64_t) const {
        constexpr int64_t kAfter = kHasLeast ? 4 : 2, kBits = kFifth ? 4 : 0;
        Step to;
        const Bytes packed = quads([&](int quad) { return load_16(unit[quad] + kAfter + kBits); });
        to.bytes[0] = low_halves(packed);
        to.bytes[1] = high_halves(packed);
        if constexpr (kFifth)
            add_fifths(to, words(kAfter));
        const __m128i halves = words(0); // a scale, and a least number or something else
#if TIGHTSHIP_VECTOR_BYTES == 64
        const Vector real =
            _mm512_castps256_ps512(_mm256_maskz_cvtph_ps(static_cast<__mmask8>(-1), halves));
#else
        const Vector real = _mm256_castps128_ps256(_mm_cvtph_ps(halves));
#endif
        to.scales[0] = spread(real, quad_numbers(2, 0));
        to.least[0] = kHasLeast ? spread(real, quad_numbers(2, 1)) : to.scales[0] * -16.0F;
        return to;
    }

  private:
    template <class Make> static Bytes quads(const Make &make) {
#if TIGHTSHIP_VECTOR_BYTES == 64
        return in_quads(make(0), make(1), make(2), make(3));
#else
        return in_quads(make(0), make(1));
#endif
    }

    /// Returns a dword of each unit.
    __m128i words(int64_t at) const {
        if constexpr (kQuads == 4)
            return _mm_setr_epi32(dword_at(unit[0] + at), dword_at(unit[1] + at),
                                  dword_at(unit[2] + at), dword_at(unit[3] + at));
        return _mm_setr_epi32(dword_at(unit[0] + at), dword_at(unit[1] + at), 0, 0);
    }

    /// Adds the fifth bits, of which a word has those of a unit.
    static void add_fifths(Step &to, __m128i fifths) {
        Ints order{}; // of a quad's word
        for (int lane = 0; lane < kWidth; ++lane)
            order[lane] = (lane / 4 * 4 + lane % 4 / 2) * 0x01010101;
        const Bytes all = repeated(fifths);
        const Bytes mask = bits_of_bytes();
        to.bytes[0] =
            either_of(to.bytes[0], sixteens(shuffled(all, reinterpret_cast<Bytes>(order)), mask));
        order += 0x02020202;
        to.bytes[1] =
            either_of(to.bytes[1], sixteens(shuffled(all, reinterpret_cast<Bytes>(order)), mask));
    }

    /// Returns a bit in each byte, the eight of a byte in turn.
    static Bytes bits_of_bytes() {
        Ints bits{};
        for (int lane = 0; lane < kWidth; ++lane)
            bits[lane] = lane % 2 == 0 ? 0x08040201 : static_cast<int>(0x80402010);
        return reinterpret_cast<Bytes>(bits);
    }

    const char *unit[kQuads];
};

template <> struct Int8Code<RowCode::kQ4_1> : Int8Of32<RowCode::kQ4_1> {
    using Int8Of32::Int8Of32;
};
template <> struct Int8Code<RowCode::kQ5_0> : Int8Of32<RowCode::kQ5_0> {
    using Int8Of32::Int8Of32;
};
template <> struct Int8Code<RowCode::kQ5_1> : Int8Of32<RowCode::kQ5_1> {
    using Int8Of32::Int8Of32;
};

/// Widens eight bytes to natural numbers, in the first lanes.
inline Vector eight_floats(uint64_t bytes) {
    const __m256i wide = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes)));
    const __m256 floats = _mm256_cvtepi32_ps(wide);
#if TIGHTSHIP_VECTOR_BYTES == 64
    return _mm512_castps256_ps512(floats);
#else
    return floats;
#endif
}

/// Blocks of 256 in groups of 32, of four bits or, where `kFifth`, of five. A step has the bytes of
/// one pair of groups, or of two pairs.
template <bool kFifth> struct Int8Of256 {
    static constexpr int64_t kGroup = 32, kUnits = 1, kSteps = 128 / kLine;
    static constexpr int kPairs = kQuads / 2; ///< of a step
    using Step = Quants<false>;

    static constexpr int64_t chunk(int64_t step, int vector, int quad) {
        return (step * kPairs + quad / 2) * 64 + vector * 32 + quad % 2 * 16;
    }

    Int8Of256(const char *from, int64_t) : from(from) {
        const Four halves = two_halves(from);
        const uint32_t first = word(4), second = word(8), third = word(12);
        const uint32_t factors = (third & 0x0F0F0F0F) | (first >> 6 & 0x03030303) << 4;
        const uint32_t lower = (third >> 4 & 0x0F0F0F0F) | (second >> 6 & 0x03030303) << 4;
        scales = spread(halves[0]) * eight_floats(joined(first, factors));
        least = spread(-halves[1]) * eight_floats(joined(second, lower));
    }

    Step decode(int64_t step) const {
        Step to;
        const Bytes packed = load_bytes(from + (kFifth ? 48 : 16) + step * kLine, kLine);
        to.bytes[0] = low_halves(packed);
        to.bytes[1] = high_halves(packed);
        if constexpr (kFifth)
            add_fifths(step, to);
        for (int vector = 0; vector < 2; ++vector) {
            const Ints group =
                (lane_numbers() >> 3) * 2 + static_cast<int>(step * kPairs * 2 + vector);
            to.scales[vector] = spread(scales, group);
            to.least[vector] = spread(least, group);
        }
        return to;
    }

  private:
    static uint64_t joined(uint32_t low, uint32_t high) {
        return (low & 0x3F3F3F3F) | static_cast<uint64_t>(high) << 32;
    }

    uint32_t word(int64_t at) const { return static_cast<uint32_t>(dword_at(from + at)); }

    /// Adds bit `group` of 32 bytes, which all groups share.
    void add_fifths(int64_t step, Step &to) const {
        Ints bit{};
        for (int lane = 0; lane < kWidth; ++lane)
            bit[lane] = 0x01010101 << (lane / 8 * 2);
        const Bytes first = reinterpret_cast<Bytes>(bit << static_cast<int>(step * kPairs * 2));
        const Bytes second = reinterpret_cast<Bytes>(reinterpret_cast<Ints>(first) << 1);
#if TIGHTSHIP_VECTOR_BYTES == 64
        const Bytes bits = _mm512_broadcast_i64x4(
            _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + 16)));
#else
        const Bytes bits = load_bytes(from + 16, kLine);
#endif
        to.bytes[0] = either_of(to.bytes[0], sixteens(bits, first));
        to.bytes[1] = either_of(to.bytes[1], sixteens(bits, second));
    }

    const char *from;
    Vector scales, least;
};

template <> struct Int8Code<RowCode::kQ4K> : Int8Of256<false> {
    using Int8Of256::Int8Of256;
};
template <> struct Int8Code<RowCode::kQ5K> : Int8Of256<true> {
    using Int8Of256::Int8Of256;
};

/// Blocks of 256 integers of six bits in groups of 16. Of 128 elements, the low halves of 64 bytes
/// are the first 64.
template <> struct Int8Code<RowCode::kQ6K> {
    static constexpr int64_t kGroup = 16, kUnits = 1, kSteps = 128 / kLine;
    static constexpr int kParts = static_cast<int>(64 / kLine); ///< of the low halves
    using Step = Quants<false>;

    static constexpr int64_t chunk(int64_t step, int vector, int quad) {
        return step / kParts * 128 + vector * 64 + step % kParts * kLine + quad * 16;
    }

    Int8Code(const char *from, int64_t) : from(from) {
        const Vector scale = spread(half_of(from + 208));
        for (int64_t part = 0; part < 16 / kWidth; ++part)
            scales[part] = scale * floats_of(signed_bytes(from + 192 + part * kWidth));
    }

    Step decode(int64_t step) const {
        const int64_t half = step / kParts, part = step % kParts;
        Step to;
        const Bytes packed = load_bytes(from + step * kLine, kLine), upper = upper_bits(half, part);
        to.bytes[0] = either_of(low_halves(packed), both_of(left<4>(upper), all_bytes(0x30)));
        to.bytes[1] = either_of(high_halves(packed), both_of(upper, all_bytes(0x30)));
        for (int vector = 0; vector < 2; ++vector) {
            const int64_t first = half * 8 + vector * 4 + part * kQuads;
            to.scales[vector] =
                spread(scales[first / kWidth], quad_numbers(1, static_cast<int>(first % kWidth)));
            to.least[vector] = to.scales[vector] * -32.0F;
        }
        return to;
    }

  private:
    static Ints signed_bytes(const char *bytes) {
#if TIGHTSHIP_VECTOR_BYTES == 64
        return reinterpret_cast<Ints>(_mm512_cvtepi8_epi32(load_16(bytes)));
#else
        return reinterpret_cast<Ints>(
            _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(bytes))));
#endif
    }

    /// Returns the upper bits of a step: those of the low halves first in each byte, those of the
    /// high ones from bit 4 on.
    Bytes upper_bits(int64_t half, int64_t part) const {
        const auto *bits = reinterpret_cast<const __m256i *>(from + 128 + 32 * half);
#if TIGHTSHIP_VECTOR_BYTES == 64
        const Bytes both = _mm512_broadcast_i64x4(_mm256_loadu_si256(bits));
        (void)part;
        return _mm512_mask_srli_epi64(both, 0xF0, both, 2);
#else
        return _mm256_srl_epi16(_mm256_loadu_si256(bits),
                                _mm_cvtsi32_si128(static_cast<int>(2 * part)));
#endif
    }

    const char *from;
    Vector scales[16 / kWidth];
};

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
