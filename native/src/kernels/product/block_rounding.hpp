/// Rounding of activations to int8. Included by loops that are compiled once for each instruction
/// set.
#pragma once

#include "block_lanes.hpp"

#include <cfloat>

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

#if TIGHTSHIP_VECTOR_BYTES == 64

inline int32_t sum_of(Ints x) {
    return _mm512_reduce_add_epi32(reinterpret_cast<__m512i>(x));
}

inline int32_t largest_of(Ints x) {
    return _mm512_reduce_max_epi32(reinterpret_cast<__m512i>(x));
}

#else

/// Reduces all lanes to one by `join`, halves onto halves.
template <class Join> int32_t joined(Ints x, const Join &join) {
    x = join(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = join(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    return join(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6))[0];
}

inline int32_t sum_of(Ints x) {
    return joined(x, [](Ints left, Ints right) { return left + right; });
}

inline int32_t largest_of(Ints x) {
    return joined(x, [](Ints left, Ints right) { return left > right ? left : right; });
}

#endif

/// Returns the largest magnitude; NaN if there is a NaN.
inline float largest_of(const float *from, int64_t count) {
    Ints largest{};
    for (int64_t index = 0; index < count; index += kWidth) {
        const Ints bits =
            reinterpret_cast<Ints>(load_some(from + index, count - index)) & 0x7FFFFFFF;
        largest = bits > largest ? bits : largest;
    }
    const int32_t most = largest_of(largest);
    float magnitude;
    __builtin_memcpy(&magnitude, &most, sizeof magnitude);
    return magnitude;
}

/// Rounds a row of activations by blocks: passes the integers to `writer`, zeros behind the last,
/// and writes each block's scale and, unless `sums` is null, the sum of its integers, `step` floats
/// apart.
template <class Writer>
void round_blocks(const BlockTask &task, int64_t row, Writer &writer, float *scales, float *sums,
                  int64_t step) {
    const auto *from = reinterpret_cast<const float *>(task.source + row * task.source_row);
    const int64_t length = task.format.block;
    int64_t left = task.depth;
    for (int64_t block = 0; block < task.blocks; ++block, left -= length, from += length) {
        const int64_t count = left < length ? left : length;
        const float largest = largest_of(from, count);
        const bool is_finite = largest <= FLT_MAX, is_zero = !is_finite || largest < 0x1p-119F;
        const Vector factor = spread(is_zero ? 0.0F : 127.0F / largest);
        Ints total{};
        for (int64_t index = 0; index < length; index += kWidth) {
            Ints whole{};
            if (!is_zero && index < count)
                whole = rounded(load_some(from + index, count - index) * factor);
            writer.put(whole);
            total += whole;
        }
        const float scale = is_zero ? 0.0F : largest / 127.0F;
        scales[block * step] = is_finite ? scale : __builtin_nanf("");
        if (sums != nullptr)
            sums[block * step] = static_cast<float>(sum_of(total));
    }
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
