/// Transposition of a few rows between memory and vectors. Included by loops that are compiled once
/// for each instruction set, as tile.hpp is.
#pragma once

#include "tile.hpp"

#include <type_traits>
#include <utility>

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Parts of four elements of a vector.
using Parts = Four[kWidth / 4];

inline Vector whole_of(const Parts &parts) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    const __m512 first = _mm512_castps128_ps512(parts[0]);
    const __m512 second = _mm512_castps128_ps512(parts[2]);
    return _mm512_insertf32x8(_mm512_insertf32x4(first, parts[1], 1),
                              _mm512_castps512_ps256(_mm512_insertf32x4(second, parts[3], 1)), 1);
#elif TIGHTSHIP_VECTOR_BYTES == 32
    return __builtin_shufflevector(parts[0], parts[1], 0, 1, 2, 3, 4, 5, 6, 7);
#else
    return parts[0];
#endif
}

/// Returns a part of a vector.
template <int kPart> Four part_of(Vector vector) {
    constexpr int kFirst = kPart * 4;
    return __builtin_shufflevector(vector, vector, kFirst, kFirst + 1, kFirst + 2, kFirst + 3);
}

template <int... kPart>
void parts_of(Vector vector, Parts &parts, std::integer_sequence<int, kPart...>) {
    ((parts[kPart] = part_of<kPart>(vector)), ...);
}

/// Transposes 4 x 4 elements of each part of four vectors.
template <int... kLane>
void transpose_parts(Vector (&rows)[4], std::integer_sequence<int, kLane...>) {
    const auto low = [](Vector a, Vector b) {
        return __builtin_shufflevector(a, b,
                                       (kLane / 4 * 4 + kLane % 4 / 2 + kLane % 2 * kWidth)...);
    };
    const auto high = [](Vector a, Vector b) {
        return __builtin_shufflevector(a, b,
                                       (kLane / 4 * 4 + 2 + kLane % 4 / 2 + kLane % 2 * kWidth)...);
    };
    const auto first = [](Vector a, Vector b) {
        return __builtin_shufflevector(a, b,
                                       (kLane / 4 * 4 + kLane % 2 + kLane % 4 / 2 * kWidth)...);
    };
    const auto last = [](Vector a, Vector b) {
        return __builtin_shufflevector(a, b,
                                       (kLane / 4 * 4 + 2 + kLane % 2 + kLane % 4 / 2 * kWidth)...);
    };
    const Vector ab = low(rows[0], rows[1]), cd = low(rows[2], rows[3]);
    const Vector ab_high = high(rows[0], rows[1]), cd_high = high(rows[2], rows[3]);
    rows[0] = first(ab, cd);
    rows[1] = last(ab, cd);
    rows[2] = first(ab_high, cd_high);
    rows[3] = last(ab_high, cd_high);
}

/// Rows, `step` elements from each other, of which `lanes` are there; as many as a vector has
/// elements lie side by side in vectors.
struct RowGroup {
    int64_t step, lanes;

    /// Turns rows into vectors of the same element of all, which `put(element, vector)` takes.
    template <class Put> void gather(const float *from, int64_t length, const Put &put) const {
        cover(length, [&](auto is_whole, int64_t first, int64_t count) {
            Vector rows[4];
#pragma GCC unroll 4
            for (int row = 0; row < 4; ++row) {
                Parts parts;
#pragma GCC unroll 4
                for (int part = 0; part < kWidth / 4; ++part) {
                    const int lane = part * 4 + row;
                    const float *place = from + lane * step + first;
                    if constexpr (is_whole)
                        parts[part] = load_four(place);
                    else
                        parts[part] = lane < lanes ? some_four(place, count) : Four{};
                }
                rows[row] = whole_of(parts);
            }
            transpose_parts(rows, std::make_integer_sequence<int, kWidth>());
#pragma GCC unroll 4
            for (int row = 0; row < 4; ++row)
                if (is_whole || row < count)
                    put(first + row, rows[row]);
        });
    }

    /// Turns vectors, one after another, back into rows.
    void scatter(const float *from, int64_t length, float *to) const {
        cover(length, [&](auto is_whole, int64_t first, int64_t count) {
            Vector rows[4];
#pragma GCC unroll 4
            for (int row = 0; row < 4; ++row)
                rows[row] =
                    is_whole || row < count ? load(from + (first + row) * kWidth) : Vector{};
            transpose_parts(rows, std::make_integer_sequence<int, kWidth>());
#pragma GCC unroll 4
            for (int row = 0; row < 4; ++row) {
                Parts parts;
                parts_of(rows[row], parts, std::make_integer_sequence<int, kWidth / 4>());
#pragma GCC unroll 4
                for (int part = 0; part < kWidth / 4; ++part) {
                    const int lane = part * 4 + row;
                    float *place = to + lane * step + first;
                    if constexpr (is_whole)
                        __builtin_memcpy(place, &parts[part], sizeof(Four));
                    else if (lane < lanes)
                        store_some_four(place, parts[part], count);
                }
            }
        });
    }

  private:
    static Four some_four(const float *from, int64_t count) {
        if (count == 4)
            return load_four(from);
        Four result{};
        for (int64_t index = 0; index < count; ++index)
            result[index] = from[index];
        return result;
    }

    static void store_some_four(float *to, Four value, int64_t count) {
        if (count == 4)
            __builtin_memcpy(to, &value, sizeof value);
        else
            for (int64_t index = 0; index < count; ++index)
                to[index] = value[index];
    }

    /// Calls `each(is_whole, first, count)` for four elements at a time; the last may overlap those
    /// before them.
    template <class Each> void cover(int64_t length, const Each &each) const {
        const int64_t count = length < 4 ? length : 4;
        for (int64_t at = 0; at < length; at += 4) {
            const int64_t first = at + count > length ? length - count : at;
            if (count == 4 && lanes == kWidth)
                each(std::true_type(), first, 4);
            else
                each(std::false_type(), first, count);
        }
    }
};

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
