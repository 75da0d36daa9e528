/// Depthwise convolutions of small planes, compiled once for each instruction set: as many planes
/// side by side as a vector has elements.
#pragma once

#include "kernels/row_group.hpp"
#include "kernels/vector_math.hpp"
#include "planes_task.hpp"

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
        RowGroup{pixels, lanes}.gather(
            task_.source + plane * pixels, pixels,
            [&](int64_t pixel, Vector vector) { store(source_ + places_[pixel], vector); });
        RowGroup{taps, lanes}.gather(
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
        RowGroup{results, lanes}.scatter(results_, results, task_.target + plane * results);
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
