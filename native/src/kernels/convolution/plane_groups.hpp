/// Depthwise convolutions of small planes, compiled once for each instruction set: as many planes
/// side by side as a vector has elements.
#pragma once

#include "kernels/vector_math.hpp"
#include "planes_task.hpp"

#include <type_traits>
#include <utility>

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Vectors of results computed together, as many as keep their sums in registers.
constexpr int kPlaneVectors = 8;

/// Returns the larger of two numbers, or `x` if it is not a number.
inline Vector at_least(Vector x, Vector low) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    return _mm512_max_ps(low, x);
#else
    return x < low ? low : x;
#endif
}

inline Vector at_most(Vector x, Vector high) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    return _mm512_min_ps(high, x);
#else
    return x > high ? high : x;
#endif
}

/// Applies what follows the convolution to a vector of results.
inline Vector ended(const PlaneShape &shape, Vector sum) {
    if (shape.swishes)
        return swish(sum);
    return at_most(at_least(sum, spread(shape.low)), spread(shape.high));
}

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

/// Rows of as many planes as a vector has elements, of which `lanes` are there.
struct PlaneRows {
    int64_t step, lanes;

    /// Turns planes into vectors of the same element of all, which `put(element, vector)` takes.
    template <class Put> void gather(const float *from, int64_t length, const Put &put) const {
        cover(length, [&](auto is_whole, int64_t first, int64_t count) {
            Vector rows[4];
#pragma GCC unroll 4
            for (int row = 0; row < 4; ++row) {
                Parts parts;
#pragma GCC unroll 4
                for (int part = 0; part < kWidth / 4; ++part) {
                    const int plane = part * 4 + row;
                    const float *place = from + plane * step + first;
                    if constexpr (is_whole)
                        parts[part] = load_four(place);
                    else
                        parts[part] = plane < lanes ? some_four(place, count) : Four{};
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

    /// Turns vectors, one after another, back into planes.
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
                    const int plane = part * 4 + row;
                    float *place = to + plane * step + first;
                    if constexpr (is_whole)
                        __builtin_memcpy(place, &parts[part], sizeof(Four));
                    else if (plane < lanes)
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

/// Planes side by side: source with its columns of padding, weights and results, on the stack.
class PlaneGroup {
  public:
    PlaneGroup(const PlaneTask &task, float *scratch)
        : task_(task), shape_(*task.shape), pitch_(shape_.padded_width()), source_(scratch),
          weights_(source_ + shape_.source[0] * pitch_ * kWidth),
          results_(weights_ + shape_.taps() * kWidth) {
        int32_t *place = places_;
        for (int64_t y = 0; y < shape_.source[0]; ++y)
            for (int64_t x = 0; x < shape_.source[1]; ++x)
                *place++ = static_cast<int32_t>((y * pitch_ + shape_.pads[1] + x) * kWidth);
    }

    /// Computes a vector of channels of an image.
    void convolve(int64_t image, int64_t first) const {
        const int64_t left = shape_.channels - first;
        const int64_t lanes = left < kWidth ? left : kWidth;
        const int64_t plane = image * shape_.channels + first, taps = shape_.taps();
        const int64_t pixels = shape_.source[0] * shape_.source[1];
        const int64_t results = shape_.target[0] * shape_.target[1];
        PlaneRows{pixels, lanes}.gather(
            task_.source + plane * pixels, pixels,
            [&](int64_t pixel, Vector vector) { store(source_ + places_[pixel], vector); });
        PlaneRows{taps, lanes}.gather(
            task_.weights + first * taps, taps,
            [&](int64_t tap, Vector vector) { store(weights_ + tap * kWidth, vector); });
        const Vector bias = load_some(task_.bias + first, lanes);
        const int64_t width = shape_.target[1];
        const int64_t parts = (width + kPlaneVectors - 1) / kPlaneVectors;
        for (int64_t part = 0, x = 0; part < parts; ++part) {
            const int64_t count = (width - x) / (parts - part);
            columns_of(count)(*this, x, bias);
            x += count;
        }
        PlaneRows{results, lanes}.scatter(results_, results, task_.target + plane * results);
    }

  private:
    /// Computes `kCount` results of each row, from `x` on, with a window of `kColumns`; 0 stands
    /// for any number, and for columns that are not side by side.
    template <int kCount, int kColumns>
    static void columns(const PlaneGroup &group, int64_t x, Vector bias) {
        const PlaneShape &shape = group.shape_;
        const int64_t apart = shape.strides[1] * kWidth, down = shape.dilations[0];
        const int64_t pitch = group.pitch_ * kWidth, window = shape.kernel[1] * kWidth;
        float *to = group.results_ + x * kWidth;
        int64_t top = -shape.pads[0];
        for (int64_t y = 0; y < shape.target[0]; ++y) {
            int64_t row = 0, end = shape.kernel[0];
            while (row < end && top + row * down < 0)
                ++row;
            while (row < end && top + (end - 1) * down >= shape.source[0])
                --end;
            Vector sums[kCount] = {};
            const float *weights = group.weights_ + row * window;
            const float *from = group.source_ + (top + row * down) * pitch + x * apart;
            for (; row < end; ++row, from += down * pitch, weights += window) {
                if constexpr (kColumns > 0)
                    add_row<kCount, kColumns>(weights, from, sums);
                else
                    add_row(shape, weights, from, sums);
            }
            // Added last, a bias larger than the products costs them no digits.
#pragma GCC unroll 8
            for (int index = 0; index < kCount; ++index)
                store(to + index * kWidth, ended(shape, sums[index] + bias));
            to += shape.target[1] * kWidth;
            top += shape.strides[0];
        }
    }

    /// Adds a row of the window, each vector of the source loaded once.
    template <int kCount, int kColumns>
    static void add_row(const float *weights, const float *from, Vector (&sums)[kCount]) {
        Vector factors[kColumns];
#pragma GCC unroll 8
        for (int column = 0; column < kColumns; ++column)
            factors[column] = load(weights + column * kWidth);
#pragma GCC unroll 16
        for (int place = 0; place < kCount + kColumns - 1; ++place) {
            const Vector value = load(from + place * kWidth);
#pragma GCC unroll 8
            for (int column = 0; column < kColumns; ++column)
                if (place >= column && place - column < kCount)
                    sums[place - column] += factors[column] * value;
        }
    }

    template <int kCount>
    static void add_row(const PlaneShape &shape, const float *weights, const float *from,
                        Vector (&sums)[kCount]) {
        const int64_t apart = shape.strides[1] * kWidth, next = shape.dilations[1] * kWidth;
        for (int64_t column = 0; column < shape.kernel[1]; ++column) {
            const Vector factor = load(weights + column * kWidth);
#pragma GCC unroll 8
            for (int index = 0; index < kCount; ++index)
                sums[index] += factor * load(from + column * next + index * apart);
        }
    }

    using Columns = void (*)(const PlaneGroup &, int64_t, Vector);

    template <int kColumns> static Columns columns_of(int64_t count) {
        constexpr Columns all[] = {columns<1, kColumns>, columns<2, kColumns>, columns<3, kColumns>,
                                   columns<4, kColumns>, columns<5, kColumns>, columns<6, kColumns>,
                                   columns<7, kColumns>, columns<8, kColumns>};
        return all[count - 1];
    }

    Columns columns_of(int64_t count) const {
        const bool is_dense = shape_.strides[1] == 1 && shape_.dilations[1] == 1;
        if (is_dense && shape_.kernel[1] == 3)
            return columns_of<3>(count);
        return is_dense && shape_.kernel[1] == 5 ? columns_of<5>(count) : columns_of<0>(count);
    }

    const PlaneTask &task_;
    const PlaneShape &shape_;
    int64_t pitch_;
    float *source_, *weights_, *results_;
    int32_t places_[kPlaneGroupVectors]; ///< of the pixels in the source
};

} // namespace

void convolve_plane_groups(const PlaneTask &task, int64_t begin, int64_t end) {
    alignas(64) float scratch[kPlaneGroupVectors * kWidth];
    const PlaneShape &shape = *task.shape;
    // Columns of padding are not written again.
    const int64_t vectors = shape.source[0] * shape.padded_width();
    __builtin_memset(scratch, 0, sizeof(float) * static_cast<size_t>(vectors * kWidth));
    const PlaneGroup group(task, scratch);
    const int64_t groups = (shape.channels + kPlaneGroup - 1) / kPlaneGroup;
    for (int64_t index = begin; index < end; ++index) {
        const int64_t image = index / groups, first = (index - image * groups) * kPlaneGroup;
        const int64_t past = first + kPlaneGroup;
        for (int64_t channel = first; channel < past && channel < shape.channels; channel += kWidth)
            group.convolve(image, channel);
    }
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
