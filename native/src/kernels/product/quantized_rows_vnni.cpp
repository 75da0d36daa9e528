#include "quantized_rows_task.hpp"

#include <utility>

#ifdef __AVX512VNNI__

#include <immintrin.h>

namespace tightship::kernels::vnni {

namespace {

constexpr int kLanes = 16;
constexpr int kVectors = kQuantizedColumns / kLanes;
constexpr int kRowsMax = 6; ///< of which 24 vectors of sums stay in registers

template <class Body, int... kIndex>
[[gnu::always_inline]] inline void call_each(const Body &body,
                                             std::integer_sequence<int, kIndex...>) {
    (body(std::integral_constant<int, kIndex>()), ...);
}

/// Calls a function with each number below `kCount`, as a constant: arrays that a loop indexes
/// would be kept in memory.
template <int kCount, class Body> [[gnu::always_inline]] inline void each(const Body &body) {
    call_each(body, std::make_integer_sequence<int, kCount>());
}

inline __m512 clamped(__m512 x, __m512 low, __m512 high) {
    return _mm512_min_ps(_mm512_max_ps(x, low), high);
}

/// Operations on a sum before it is written.
template <bool kAdds> class Ending {
  public:
    explicit Ending(const QuantizedRows &shape)
        : low_(_mm512_set1_ps(shape.result.low)), high_(_mm512_set1_ps(shape.result.high)),
          product_low_(_mm512_set1_ps(shape.product.low)),
          product_high_(_mm512_set1_ps(shape.product.high)),
          product_factor_(_mm512_set1_ps(shape.product_factor)),
          addend_factor_(_mm512_set1_ps(shape.addend_factor)), shift_(_mm512_set1_ps(shape.shift)),
          flip_(_mm_set1_epi8(shape.is_addend_signed ? -128 : 0)) {}

    void write(__m512i sum, __m512 factor, __m512 term, const uint8_t *addend,
               uint8_t *target) const {
        __m512 x = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), factor, term);
        if constexpr (kAdds) {
            x = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
            x = clamped(x, product_low_, product_high_);
            const __m128i bytes =
                _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i *>(addend)), flip_);
            const __m512 other = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
            x = _mm512_fmadd_ps(x, product_factor_, _mm512_fmadd_ps(other, addend_factor_, shift_));
        }
        const __m512i whole = _mm512_cvtps_epi32(clamped(x, low_, high_));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(target), _mm512_cvtepi32_epi8(whole));
    }

  private:
    __m512 low_, high_, product_low_, product_high_, product_factor_, addend_factor_, shift_;
    __m128i flip_;
};

template <bool kAdds, int kRows>
void tile(const QuantizedRowsTask &task, int64_t column, int64_t row) {
    const int64_t depth = task.shape->depth, columns = task.shape->columns;
    const uint8_t *source = task.source + row * depth;
    const int8_t *weights = task.weights + column * depth;
    __m512i sums[kRows * kVectors];
    each<kRows * kVectors>([&](auto at) { sums[at] = _mm512_setzero_si512(); });
    for (int64_t step = 0; step < depth; step += kQuantizedDepth) {
        __m512i vectors[kVectors], bytes[kRows];
        each<kVectors>([&](auto at) {
            vectors[at] = _mm512_loadu_si512(weights + at * kLanes * depth + step * kLanes);
        });
        each<kRows>([&](auto at) {
            int32_t four;
            __builtin_memcpy(&four, source + at * depth + step, sizeof four);
            bytes[at] = _mm512_set1_epi32(four);
        });
        each<kRows * kVectors>([&](auto at) {
            // The compiler's own function for it keeps the sums in memory.
            asm("vpdpbusd %2, %1, %0"
                : "+v"(sums[at])
                : "v"(bytes[at / kVectors]), "v"(vectors[at % kVectors]));
        });
    }
    const Ending<kAdds> ending(*task.shape);
    each<kRows * kVectors>([&](auto at) {
        constexpr int kRow = at % kRows, kVector = at / kRows;
        const int64_t first = column + kVector * kLanes, place = (row + kRow) * columns + first;
        ending.write(sums[kRow * kVectors + kVector], _mm512_loadu_ps(task.factors + first),
                     _mm512_loadu_ps(task.terms + first), task.addend + place, task.target + place);
    });
}

using Tile = void (*)(const QuantizedRowsTask &, int64_t, int64_t);

template <bool kAdds> Tile tile_of(int64_t rows) {
    constexpr Tile tiles[] = {tile<kAdds, 1>, tile<kAdds, 2>, tile<kAdds, 3>,
                              tile<kAdds, 4>, tile<kAdds, 5>, tile<kAdds, 6>};
    return tiles[rows - 1];
}

} // namespace

void multiply_quantized_rows(const QuantizedRowsTask &task, int64_t column, int64_t begin,
                             int64_t end) {
    for (int64_t row = begin; row < end;) {
        const int64_t left = end - row, tiles = (left + kRowsMax - 1) / kRowsMax;
        const int64_t rows = (left + tiles - 1) / tiles;
        (task.shape->adds ? tile_of<true>(rows) : tile_of<false>(rows))(task, column, row);
        row += rows;
    }
}

} // namespace tightship::kernels::vnni

#endif
