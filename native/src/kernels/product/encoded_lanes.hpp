/// Decoders of encoded rows, a vector of elements at a time. Included by loops that are compiled
/// once for each instruction set. A decoder calls `sink(element, vector)` for a unit's vectors.
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

template <RowCode Type> struct Code;

template <> struct Code<RowCode::kF16> {
    template <class Sink> static void decode(const char *from, const Sink &sink) {
#pragma GCC unroll 4
        for (int64_t element = 0; element < 32; element += kWidth)
            sink(element, load_halves(from + 2 * element, kWidth));
    }
};

template <> struct Code<RowCode::kBf16> {
    template <class Sink> static void decode(const char *from, const Sink &sink) {
        typedef uint16_t Small __attribute__((vector_size(2 * kWidth)));
#pragma GCC unroll 4
        for (int64_t element = 0; element < 32; element += kWidth) {
            Small small;
            __builtin_memcpy(&small, from + 2 * element, sizeof small);
            sink(element, reinterpret_cast<Vector>(__builtin_convertvector(small, Ints) << 16));
        }
    }
};

/// Blocks of 32 integers of four bits, with a fifth each where `kFifth`.
template <bool kFifth, bool kHasLeast> struct Of32 {
    template <class Sink> static void decode(const char *from, const Sink &sink) {
        constexpr int64_t kAfter = kHasLeast ? 4 : 2;
        const Vector scale = spread(half_of(from));
        const Vector least = kHasLeast ? spread(half_of(from + 2)) : scale * -16.0F;
        const int fifth = kFifth ? word_of(from + kAfter) : 0;
        const char *quants = from + kAfter + (kFifth ? 4 : 0);
#pragma GCC unroll 2
        for (int64_t part = 0; part < 16; part += kWidth) {
            const Ints bytes = naturals(quants + part);
            Ints low = bytes & 15, high = bytes >> 4;
            if constexpr (kFifth) {
                const Ints bits = fifth >> (lane_numbers() + static_cast<int>(part));
                low |= (bits & 1) << 4;
                high |= (bits >> 16 & 1) << 4;
            }
            sink(part, floats_of(low) * scale + least);
            sink(16 + part, floats_of(high) * scale + least);
        }
    }
};

template <> struct Code<RowCode::kQ4_1> : Of32<false, true> {};
template <> struct Code<RowCode::kQ5_0> : Of32<true, false> {};
template <> struct Code<RowCode::kQ5_1> : Of32<true, true> {};

/// Blocks of 256 integers of four bits, with a fifth each where `kFifth`.
template <bool kFifth> struct Of256 {
    template <class Sink> static void decode(const char *from, const Sink &sink) {
        const float scale = half_of(from), least = half_of(from + 2);
        const auto *packed = reinterpret_cast<const uint8_t *>(from + 4);
        const char *quants = from + (kFifth ? 48 : 16);
        for (int group = 0; group < 8; group += 2) {
            const SixBits one = six_bits(packed, group), two = six_bits(packed, group + 1);
            const Vector first = spread(scale * static_cast<float>(one.factor));
            const Vector second = spread(scale * static_cast<float>(two.factor));
            const Vector below = spread(least * static_cast<float>(one.least));
            const Vector under = spread(least * static_cast<float>(two.least));
#pragma GCC unroll 4
            for (int64_t part = 0; part < 32; part += kWidth) {
                const Ints bytes = naturals(quants + group * 16 + part);
                Ints low = bytes & 15, high = bytes >> 4;
                if constexpr (kFifth) {
                    const Ints bits = naturals(from + 16 + part) >> group;
                    low |= (bits & 1) << 4;
                    high |= (bits & 2) << 3;
                }
                sink(group * 32 + part, floats_of(low) * first - below);
                sink(group * 32 + 32 + part, floats_of(high) * second - under);
            }
        }
    }
};

template <> struct Code<RowCode::kQ4K> : Of256<false> {};
template <> struct Code<RowCode::kQ5K> : Of256<true> {};

template <> struct Code<RowCode::kQ6K> {
    template <class Sink> static void decode(const char *from, const Sink &sink) {
        const float scale = half_of(from + 208);
        for (int64_t half = 0; half < 2; ++half) {
            const auto *factors = reinterpret_cast<const int8_t *>(from + 192 + 8 * half);
#pragma GCC unroll 4
            for (int64_t part = 0; part < 32; part += kWidth) {
                const Ints near = naturals(from + 64 * half + part);
                const Ints far = naturals(from + 64 * half + 32 + part);
                const Ints upper = naturals(from + 128 + 32 * half + part);
                const Ints quants[] = {(near & 15) | (upper & 3) << 4,
                                       (far & 15) | (upper & 12) << 2, near >> 4 | (upper & 48),
                                       far >> 4 | (upper & 192) >> 2};
#pragma GCC unroll 4
                for (int64_t group = 0; group < 4; ++group) {
                    const int8_t factor = factors[2 * group + part / 16];
                    sink(half * 128 + group * 32 + part,
                         floats_of(quants[group] - 32) * (scale * static_cast<float>(factor)));
                }
            }
        }
    }
};

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
