/// Products of few queries with keys as they are stored. Compiled once for each instruction set.
#pragma once

#include "attention_scores.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int kKeysAtOnce = 4; ///< keys whose products with a query are added up together
/// Queries, likewise: as many as keep their sums in the 32 or 16 registers.
constexpr int kQueriesAtOnce = TIGHTSHIP_VECTOR_BYTES == 64 ? 4 : 3;

/// Adds the lanes of each of four vectors, all four at once.
inline Four four_sums(const Vector (&from)[kKeysAtOnce]) {
    const auto [a, b, c, d] = from;
#if TIGHTSHIP_VECTOR_BYTES == 64
    const Vector left = _mm512_unpacklo_ps(a, b) + _mm512_unpackhi_ps(a, b);
    const Vector right = _mm512_unpacklo_ps(c, d) + _mm512_unpackhi_ps(c, d);
    const Vector all = _mm512_shuffle_ps(left, right, 0x44) + _mm512_shuffle_ps(left, right, 0xEE);
    const __m256 half = _mm512_castps512_ps256(all) + _mm512_extractf32x8_ps(all, 1);
    return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
#elif TIGHTSHIP_VECTOR_BYTES == 32
    const Vector left = _mm256_unpacklo_ps(a, b) + _mm256_unpackhi_ps(a, b);
    const Vector right = _mm256_unpacklo_ps(c, d) + _mm256_unpackhi_ps(c, d);
    const Vector all = _mm256_shuffle_ps(left, right, 0x44) + _mm256_shuffle_ps(left, right, 0xEE);
    return _mm256_castps256_ps128(all) + _mm256_extractf128_ps(all, 1);
#else
    const Vector left =
        __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Vector right =
        __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
    return __builtin_shufflevector(left, right, 0, 1, 4, 5) +
           __builtin_shufflevector(left, right, 2, 3, 6, 7);
#endif
}

/// Queries in rows of whole vectors, `step` elements apart.
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
void dots(const Queries &queries, const char *const (&keys)[kKeysAtOnce], int64_t depth,
          float *scores, int64_t scores_step) {
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

using Dots = void (*)(const Queries &, const char *const (&)[kKeysAtOnce], int64_t, float *,
                      int64_t);

template <RowType kType> Dots dots_of(int64_t rows) {
    constexpr Dots kDots[] = {dots<kType, 1>, dots<kType, 2>, dots<kType, 3>,
                              dots<kType, kQueriesAtOnce>};
    return kDots[rows - 1];
}

/// Returns the function for keys of a type and up to `kQueriesAtOnce` queries.
inline Dots dots_of(RowType type, int64_t rows) {
    constexpr Dots (*kTypes[])(int64_t) = {dots_of<RowType::kFloat32>, dots_of<RowType::kFloat16>,
                                           dots_of<RowType::kBfloat16>, dots_of<RowType::kInt8>};
    return kTypes[static_cast<int>(type)](rows);
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
