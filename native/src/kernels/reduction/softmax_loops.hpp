/// Softmax over rows, compiled once for each instruction set.
#pragma once

#include "kernels/row_group.hpp"
#include "kernels/vector_math.hpp"
#include "softmax_task.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Longest rows of which as many lie side by side as a vector has elements.
constexpr int64_t kShortRow = 32;

/// Returns the larger of two numbers. A NaN may be lost: its power makes the row's sum one.
inline Vector larger_of(Vector a, Vector b) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    return _mm512_max_ps(a, b);
#else
    return a > b ? a : b;
#endif
}

/// Returns the first `count` elements, with zeros behind them.
inline Vector first_of(Vector vector, int64_t count) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    return _mm512_maskz_mov_ps(static_cast<__mmask16>((1U << count) - 1U), vector);
#else
    for (int64_t lane = count; lane < kWidth; ++lane)
        vector[lane] = 0;
    return vector;
#endif
}

inline float sum_of(Vector vector) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    return _mm512_reduce_add_ps(vector);
#else
    float sum = vector[0];
    for (int lane = 1; lane < kWidth; ++lane)
        sum += vector[lane];
    return sum;
#endif
}

inline float largest_of(Vector vector) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    return _mm512_reduce_max_ps(vector);
#else
    float largest = vector[0];
    for (int lane = 1; lane < kWidth; ++lane)
        largest = vector[lane] > largest ? vector[lane] : largest;
    return largest;
#endif
}

/// Computes up to a vector of rows side by side.
inline void softmax_group(const float *source, float *target, int64_t length, int64_t lanes) {
    alignas(64) float columns[kShortRow * kWidth];
    const RowGroup group{length, lanes};
    group.gather(source, length,
                 [&](int64_t index, Vector vector) { store(columns + index * kWidth, vector); });
    Vector top = load(columns), sum{};
    for (int64_t index = 1; index < length; ++index)
        top = larger_of(top, load(columns + index * kWidth));
    for (int64_t index = 0; index < length; ++index) {
        const Vector power = exponential(load(columns + index * kWidth) - top);
        store(columns + index * kWidth, power);
        sum += power;
    }
    const Vector factor = 1.0F / sum;
    for (int64_t index = 0; index < length; ++index)
        store(columns + index * kWidth, load(columns + index * kWidth) * factor);
    group.scatter(columns, length, target);
}

/// Computes a row of at least a vector's length.
inline void softmax_row(const float *source, float *target, int64_t length) {
    const int64_t whole = length / kWidth * kWidth, rest = length - whole;
    Vector tops = load(source + length - kWidth), sums{};
    for (int64_t index = 0; index < whole; index += kWidth)
        tops = larger_of(tops, load(source + index));
    const Vector top = spread(largest_of(tops));
    for (int64_t index = 0; index < whole; index += kWidth) {
        const Vector power = exponential(load(source + index) - top);
        store(target + index, power);
        sums += power;
    }
    if (rest > 0) {
        const Vector power = exponential(load_some(source + whole, rest) - top);
        store_some(target + whole, power, rest);
        sums += first_of(power, rest);
    }
    const Vector factor = spread(1.0F / sum_of(sums));
    for (int64_t index = 0; index < whole; index += kWidth)
        store(target + index, load(target + index) * factor);
    if (rest > 0)
        store_some(target + whole, load_some(target + whole, rest) * factor, rest);
}

} // namespace

void softmax_rows(const float *source, float *target, int64_t length, int64_t begin, int64_t end) {
    if (length > kShortRow) {
        for (int64_t row = begin; row < end; ++row)
            softmax_row(source + row * length, target + row * length, length);
        return;
    }
    for (int64_t row = begin; row < end; row += kWidth)
        softmax_group(source + row * length, target + row * length, length,
                      end - row < kWidth ? end - row : kWidth);
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
