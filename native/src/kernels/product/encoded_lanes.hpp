/// Decoders of encoded rows, a vector of elements at a time. Included by loops that are compiled
/// once for each instruction set.
///
/// A decoder is made of a unit of a row. It decodes `kStep` elements at a time, those of the
/// vectors at `place(step, vector)`, and does not depend on how many rows and columns are in work.
#pragma once

#include "block_lanes.hpp"
#include "encoded_scales.hpp"
#include "encoded_task.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

inline int word_of(const char *from) {
    int word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

/// Quants of four bits times a factor, plus a number, the low or the high ones of some bytes.
class FourBits {
  public:
    FourBits(float factor, float least) : factor_(spread(factor)), least_(spread(least)) {
#if TIGHTSHIP_VECTOR_BYTES == 64
        factor_ = floats_of(lane_numbers()) * factor_ + least_; // a table of all numbers
#endif
    }

    Vector low(Ints bytes) const {
#if TIGHTSHIP_VECTOR_BYTES == 64
        return spread(factor_, bytes); // which looks at the last four bits
#else
        return floats_of(bytes & 15) * factor_ + least_;
#endif
    }

    Vector high(Ints bytes) const {
#if TIGHTSHIP_VECTOR_BYTES == 64
        return spread(factor_, bytes >> 4);
#else
        return floats_of(bytes >> 4) * factor_ + least_;
#endif
    }

  private:
    Vector factor_, least_;
};

template <RowCode Type> struct Code;

/// Steps that follow one another.
template <int Elements> struct InOrder {
    static constexpr int kStep = Elements, kVectors = Elements / kWidth;

    static constexpr int64_t place(int64_t step, int vector) {
        return step * kStep + vector * kWidth;
    }
};

template <> struct Code<RowCode::kF16> : InOrder<32> {
    explicit Code(const char *unit) : from(unit) {}

    void decode(int64_t, Vector (&to)[kVectors]) const {
#pragma GCC unroll 4
        for (int vector = 0; vector < kVectors; ++vector)
            to[vector] = load_halves(from + 2 * vector * kWidth, kWidth);
    }

    const char *from;
};

template <> struct Code<RowCode::kBf16> : InOrder<32> {
    explicit Code(const char *unit) : from(unit) {}

    void decode(int64_t, Vector (&to)[kVectors]) const {
        typedef uint16_t Small __attribute__((vector_size(2 * kWidth)));
#pragma GCC unroll 4
        for (int vector = 0; vector < kVectors; ++vector) {
            Small small;
            __builtin_memcpy(&small, from + 2 * vector * kWidth, sizeof small);
            to[vector] = reinterpret_cast<Vector>(__builtin_convertvector(small, Ints) << 16);
        }
    }

    const char *from;
};

template <> struct Code<RowCode::kQ4_1> : InOrder<32> {
    explicit Code(const char *unit) : Code(unit + 4, two_halves(unit)) {}
    Code(const char *from, Four halves) : from(from), quants(halves[0], halves[1]) {}

    void decode(int64_t, Vector (&to)[kVectors]) const {
#pragma GCC unroll 2
        for (int part = 0; part < kVectors / 2; ++part) {
            const Ints bytes = naturals(from + part * kWidth);
            to[part] = quants.low(bytes);
            to[part + kVectors / 2] = quants.high(bytes);
        }
    }

    const char *from;
    FourBits quants;
};

/// Blocks of 32 integers of five bits.
template <bool kHasLeast> struct FiveBits : InOrder<32> {
    explicit FiveBits(const char *unit) : from(unit) {}

    void decode(int64_t, Vector (&to)[kVectors]) const {
        constexpr int64_t kAfter = kHasLeast ? 4 : 2;
        const Four halves = two_halves(from); // the second only with a least number
        const Vector scale = spread(halves[0]);
        const Vector least = kHasLeast ? spread(halves[1]) : scale * -16.0F;
        const int fifth = word_of(from + kAfter);
#pragma GCC unroll 2
        for (int part = 0; part < kVectors / 2; ++part) {
            const Ints bytes = naturals(from + kAfter + 4 + part * kWidth);
            const Ints bits = fifth >> (lane_numbers() + part * kWidth);
            const Ints low = (bytes & 15) | (bits & 1) << 4;
            const Ints high = bytes >> 4 | (bits >> 16 & 1) << 4;
            to[part] = floats_of(low) * scale + least;
            to[part + kVectors / 2] = floats_of(high) * scale + least;
        }
    }

    const char *from;
};

template <> struct Code<RowCode::kQ5_0> : FiveBits<false> {
    using FiveBits::FiveBits;
};
template <> struct Code<RowCode::kQ5_1> : FiveBits<true> {
    using FiveBits::FiveBits;
};

/// Blocks of 256 integers of four bits, with a fifth each where `kFifth`, in groups of 32; two
/// groups at a time.
template <bool kFifth> struct Of256 : InOrder<64> {
    explicit Of256(const char *unit) : Of256(unit, two_halves(unit)) {}
    Of256(const char *unit, Four halves) : from(unit), scale(halves[0]), least(halves[1]) {}

    void decode(int64_t step, Vector (&to)[kVectors]) const {
        const auto *packed = reinterpret_cast<const uint8_t *>(from + 4);
        const char *quants = from + (kFifth ? 48 : 16) + step * 32;
        const int group = static_cast<int>(2 * step);
        const SixBits one = six_bits(packed, group), two = six_bits(packed, group + 1);
        const float first = scale * static_cast<float>(one.factor);
        const float second = scale * static_cast<float>(two.factor);
        const float below = least * static_cast<float>(one.least);
        const float under = least * static_cast<float>(two.least);
        if constexpr (kFifth) {
#pragma GCC unroll 4
            for (int part = 0; part < kVectors / 2; ++part) {
                const Ints bytes = naturals(quants + part * kWidth);
                const Ints bits = naturals(from + 16 + part * kWidth) >> group;
                const Ints low = (bytes & 15) | (bits & 1) << 4;
                const Ints high = bytes >> 4 | (bits & 2) << 3;
                to[part] = floats_of(low) * first - below;
                to[part + kVectors / 2] = floats_of(high) * second - under;
            }
        } else {
            const FourBits lower(first, -below), upper(second, -under);
#pragma GCC unroll 4
            for (int part = 0; part < kVectors / 2; ++part) {
                const Ints bytes = naturals(quants + part * kWidth);
                to[part] = lower.low(bytes);
                to[part + kVectors / 2] = upper.high(bytes);
            }
        }
    }

    const char *from;
    float scale, least;
};

template <> struct Code<RowCode::kQ4K> : Of256<false> {
    using Of256::Of256;
};
template <> struct Code<RowCode::kQ5K> : Of256<true> {
    using Of256::Of256;
};

/// Blocks of 256 integers of six bits, in groups of 32; a group and the second one behind it, which
/// share bytes, at a time.
template <> struct Code<RowCode::kQ6K> {
    static constexpr int kStep = 64, kVectors = kStep / kWidth;

    static constexpr int64_t place(int64_t step, int vector) {
        const int64_t half = step / 2, group = step % 2 + (vector < kVectors / 2 ? 0 : 2);
        return half * 128 + group * 32 + vector % (kVectors / 2) * kWidth;
    }

    explicit Code(const char *unit) : from(unit), scale(half_of(unit + 208)) {}

    void decode(int64_t step, Vector (&to)[kVectors]) const {
        const int64_t half = step / 2;
        const int side = static_cast<int>(step % 2);
        const auto *factors = reinterpret_cast<const int8_t *>(from + 192 + 8 * half + 2 * side);
#pragma GCC unroll 4
        for (int part = 0; part < kVectors / 2; ++part) {
            const Ints bytes = naturals(from + 32 * step + part * kWidth);
            const Ints upper = naturals(from + 128 + 32 * half + part * kWidth) >> (2 * side);
            const Ints low = (bytes & 15) | (upper & 3) << 4, high = bytes >> 4 | (upper & 48);
            const int factor = part * kWidth / 16;
            to[part] = floats_of(low - 32) * (scale * static_cast<float>(factors[factor]));
            to[part + kVectors / 2] =
                floats_of(high - 32) * (scale * static_cast<float>(factors[4 + factor]));
        }
    }

    const char *from;
    float scale;
};

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
