/// Products of few queries with keys as they are stored. Compiled once for each instruction set.
#pragma once

#include "attention_scores.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int kKeysAtOnce = 4; ///< keys whose products with a query are added up together
/// Queries, likewise: as many as keep their sums in the 32 or 16 registers.
constexpr int kQueriesAtOnce = TIGHTSHIP_VECTOR_BYTES == 64 ? 4 : 3;

/// Adds the lanes of each of four vectors, all four at once and in the order of `sum_of`.
inline Four four_sums(const Vector (&from)[kKeysAtOnce]) {
    const auto [a, b, c, d] = from;
#if TIGHTSHIP_VECTOR_BYTES == 64
    const auto halves = [](Vector x, Vector y) {
        return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xEE));
    };
    const Vector left = halves(a, b), right = halves(c, d);
    const Vector quarters = _mm512_add_ps(_mm512_shuffle_f32x4(left, right, 0x88),
                                          _mm512_shuffle_f32x4(left, right, 0xDD));
    const Vector pairs = _mm512_add_ps(quarters, _mm512_movehdup_ps(quarters));
    const Vector all = _mm512_add_ps(pairs, _mm512_permute_ps(pairs, 0xAA));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(order, all));
#elif TIGHTSHIP_VECTOR_BYTES == 32
    const auto halves = [](Vector x, Vector y) {
        return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20),
                             _mm256_permute2f128_ps(x, y, 0x31));
    };
    const Vector left = halves(a, b), right = halves(c, d);
    const Vector pairs = _mm256_hadd_ps(left, right); // a0 a2 c0 c2, then b0 b2 d0 d2
    const Vector all = _mm256_add_ps(pairs, _mm256_movehdup_ps(pairs));
    const __m256i order = _mm256_setr_epi32(0, 4, 2, 6, 0, 0, 0, 0);
    return _mm256_castps256_ps128(_mm256_permutevar8x32_ps(all, order));
#else
    const Vector left =
        __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
    const Vector right =
        __builtin_shufflevector(c, d, 0, 2, 4, 6) + __builtin_shufflevector(c, d, 1, 3, 5, 7);
    return __builtin_shufflevector(left, right, 0, 2, 4, 6) +
           __builtin_shufflevector(left, right, 1, 3, 5, 7);
#endif
}

/// Queries in rows of whole vectors, `step` elements apart. Passed by value, in registers: by way
/// of the stack, attention over many floats took some hundredths longer.
struct Queries {
    const float *data;
    int64_t step;
};

/// Adds products of up to a vector of elements from `index` on.
template <RowType kType, int Count>
[[gnu::always_inline]] inline void
add_products(const Queries &queries, const char *const (&keys)[kKeysAtOnce], int64_t index,
             int64_t left, Vector (&sums)[Count][kKeysAtOnce]) {
#pragma GCC unroll 4
    for (int key = 0; key < kKeysAtOnce; ++key) {
        const Vector some = load_stored<kType>(keys[key] + index * element_bytes(kType), left);
#pragma GCC unroll 4
        for (int row = 0; row < Count; ++row)
            sums[row][key] += load(queries.data + row * queries.step + index) * some;
    }
}

/// Computes products of keys with `Count` queries; `scores` of a query are `scores_step` from those
/// of the one before.
template <RowType kType, int Count>
void dots(Queries queries, const char *const (&keys)[kKeysAtOnce], int64_t depth, float *scores,
          int64_t scores_step) {
    Vector sums[Count][kKeysAtOnce] = {};
    int64_t index = 0;
    for (; index + kWidth <= depth; index += kWidth)
        add_products<kType>(queries, keys, index, kWidth, sums);
    if (index < depth)
        add_products<kType>(queries, keys, index, depth - index, sums);
    Four scales{};
    for (int key = 0; key < kKeysAtOnce; ++key)
        scales[key] = scale_of<kType>(keys[key], depth);
#pragma GCC unroll 4
    for (int row = 0; row < Count; ++row) {
        const Four sum = four_sums(sums[row]);
        const Four scaled = kType == RowType::kInt8 ? sum * scales : sum;
        __builtin_memcpy(scores + row * scores_step, &scaled, sizeof scaled);
    }
}

/// Computes products of one key of floats with `Count` queries. Memory delivers such rows one after
/// the other faster than four beside each other, and takes longer than their products.
template <int Count>
void float_dots(Queries queries, const char *key, int64_t depth, float *scores,
                int64_t scores_step) {
    Vector sums[Count] = {};
    for (int64_t index = 0; index < depth; index += kWidth) {
        const Vector some = load_some(reinterpret_cast<const float *>(key) + index, depth - index);
#pragma GCC unroll 4
        for (int row = 0; row < Count; ++row)
            sums[row] += load(queries.data + row * queries.step + index) * some;
    }
#pragma GCC unroll 4
    for (int row = 0; row < Count; ++row)
        scores[row * scores_step] = sum_of(sums[row]);
}

using FloatDots = void (*)(Queries, const char *, int64_t, float *, int64_t);

/// Returns the function for up to four queries.
inline FloatDots float_dots_of(int64_t rows) {
    constexpr FloatDots kDots[] = {float_dots<1>, float_dots<2>, float_dots<3>, float_dots<4>};
    return kDots[rows - 1];
}

using Dots = void (*)(Queries, const char *const (&)[kKeysAtOnce], int64_t, float *, int64_t);

template <RowType kType> Dots dots_of(int64_t rows) {
    constexpr Dots kDots[] = {dots<kType, 1>, dots<kType, 2>, dots<kType, 3>,
                              dots<kType, kQueriesAtOnce>};
    return kDots[rows - 1];
}

/// Returns the function for keys of a type other than float32 and up to `kQueriesAtOnce` queries.
inline Dots dots_of(RowType type, int64_t rows) {
    if (type == RowType::kFloat16)
        return dots_of<RowType::kFloat16>(rows);
    return type == RowType::kBfloat16 ? dots_of<RowType::kBfloat16>(rows)
                                      : dots_of<RowType::kInt8>(rows);
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
