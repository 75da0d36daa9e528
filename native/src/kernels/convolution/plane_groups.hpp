/// Depthwise convolutions of small planes, compiled once for each instruction set: as many planes
/// side by side as a vector has elements.
#pragma once

#include "kernels/vector_math.hpp"
#include "planes_task.hpp"

#include <utility>

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Vectors of results computed together, as many as keep their sums in registers.
constexpr int kPlaneVectors = 8;

/// Applies what follows the convolution to a vector of results.
inline Vector ended(const PlaneShape &shape, Vector sum) {
    if (shape.swishes)
        return swish(sum);
    const Vector low = spread(shape.low), high = spread(shape.high);
    const Vector raised = sum < low ? low : sum;
    return raised > high ? high : raised;
}

/// Exchanges elements of two rows `kApart` from each other: a step of a transposition.
template <int kApart, int... kLane>
void exchange(Vector &first, Vector &second, std::integer_sequence<int, kLane...>) {
    const Vector low = first, high = second;
    first = __builtin_shufflevector(low, high,
                                    ((kLane & kApart) != 0 ? kWidth + kLane - kApart : kLane)...);
    second = __builtin_shufflevector(low, high,
                                     ((kLane & kApart) != 0 ? kWidth + kLane : kLane + kApart)...);
}

template <int kApart> void exchange_rows(Vector (&rows)[kWidth]) {
#pragma GCC unroll 16
    for (int row = 0; row < kWidth; ++row)
        if ((row & kApart) == 0)
            exchange<kApart>(rows[row], rows[row + kApart],
                             std::make_integer_sequence<int, kWidth>());
    if constexpr (kApart > 1)
        exchange_rows<kApart / 2>(rows);
}

/// Rows of as many planes as a vector has elements, of which `lanes` are there.
struct PlaneRows {
    int64_t step, lanes;

    /// Calls `each(first, count)` for vectors that cover `length` elements; the last overlaps the
    /// one before it.
    template <class Each> static void cover(int64_t length, const Each &each) {
        const int64_t count = length < kWidth ? length : kWidth;
        for (int64_t first = 0; first < length; first += kWidth)
            each(first + count > length ? length - count : first, count);
    }

    /// Turns planes into vectors of the same element of all; calls `put(element, vector)`.
    template <class Put> void gather(const float *from, int64_t length, const Put &put) const {
        cover(length, [&](int64_t first, int64_t count) {
            Vector rows[kWidth];
#pragma GCC unroll 16
            for (int row = 0; row < kWidth; ++row)
                rows[row] = row < lanes ? load_some(from + row * step + first, count) : Vector{};
            exchange_rows<kWidth / 2>(rows);
#pragma GCC unroll 16
            for (int row = 0; row < kWidth; ++row)
                if (row < count)
                    put(first + row, rows[row]);
        });
    }

    /// Turns vectors, one after another, back into planes.
    void scatter(const float *from, int64_t length, float *to) const {
        cover(length, [&](int64_t first, int64_t count) {
            Vector rows[kWidth];
#pragma GCC unroll 16
            for (int row = 0; row < kWidth; ++row)
                rows[row] = row < count ? load(from + (first + row) * kWidth) : Vector{};
            exchange_rows<kWidth / 2>(rows);
#pragma GCC unroll 16
            for (int row = 0; row < kWidth; ++row)
                if (row < lanes)
                    store_some(to + row * step + first, rows[row], count);
        });
    }
};

/// Planes side by side: source with its columns of padding, weights and results, on the stack.
class PlaneGroup {
  public:
    PlaneGroup(const PlaneTask &task, float *scratch)
        : task_(task), shape_(*task.shape), pitch_(shape_.padded_width()), source_(scratch),
          weights_(source_ + shape_.source[0] * pitch_ * kWidth),
          results_(weights_ + shape_.taps() * kWidth) {}

    /// Computes a vector of channels of an image.
    void convolve(int64_t image, int64_t first) const {
        const int64_t left = shape_.channels - first;
        const int64_t lanes = left < kWidth ? left : kWidth;
        const auto &[height, width] = shape_.source;
        const int64_t plane = image * shape_.channels + first, taps = shape_.taps();
        const int64_t pixels = height * width, results = shape_.target[0] * shape_.target[1];
        PlaneRows{pixels, lanes}.gather(
            task_.source + plane * pixels, pixels, [&](int64_t pixel, Vector vector) {
                const int64_t y = pixel / width;
                store(source_ + (pixel + y * (pitch_ - width) + shape_.pads[1]) * kWidth, vector);
            });
        PlaneRows{taps, lanes}.gather(
            task_.weights + first * taps, taps,
            [&](int64_t tap, Vector vector) { store(weights_ + tap * kWidth, vector); });
        const Vector bias = load_some(task_.bias + first, lanes);
        for (int64_t y = 0; y < shape_.target[0]; ++y)
            row(y, bias);
        PlaneRows{results, lanes}.scatter(results_, results, task_.target + plane * results);
    }

  private:
    /// Computes a row of results.
    void row(int64_t y, Vector bias) const {
        const int64_t width = shape_.target[1], across = shape_.strides[1];
        const int64_t top = y * shape_.strides[0] - shape_.pads[0], down = shape_.dilations[0];
        int64_t first = 0, end = shape_.kernel[0];
        while (first < end && top + first * down < 0)
            ++first;
        while (first < end && top + (end - 1) * down >= shape_.source[0])
            --end;
        const float *from = source_ + top * pitch_ * kWidth;
        float *to = results_ + y * width * kWidth;
        const int64_t parts = (width + kPlaneVectors - 1) / kPlaneVectors;
        for (int64_t part = 0, x = 0; part < parts; ++part) {
            const int64_t count = (width - x) / (parts - part);
            part_of(count)(*this, {first, end}, from + x * across * kWidth, bias, to + x * kWidth);
            x += count;
        }
    }

    struct Span {
        int64_t first, end;
    };

    /// Computes `kCount` results side by side from rows of the window.
    template <int kCount>
    static void part(const PlaneGroup &group, Span rows, const float *from, Vector bias,
                     float *to) {
        const PlaneShape &shape = group.shape_;
        const int64_t apart = shape.strides[1] * kWidth, next = shape.dilations[1] * kWidth;
        const int64_t columns = shape.kernel[1];
        Vector sums[kCount] = {};
        const float *weight = group.weights_ + rows.first * columns * kWidth;
        for (int64_t row = rows.first; row < rows.end; ++row) {
            const float *values = from + row * shape.dilations[0] * group.pitch_ * kWidth;
            for (int64_t column = 0; column < columns; ++column) {
                const Vector factor = load(weight);
#pragma GCC unroll 8
                for (int index = 0; index < kCount; ++index)
                    sums[index] += factor * load(values + index * apart);
                weight += kWidth;
                values += next;
            }
        }
        // Added last, a bias larger than the products costs them no digits.
#pragma GCC unroll 8
        for (int index = 0; index < kCount; ++index)
            store(to + index * kWidth, ended(shape, sums[index] + bias));
    }

    using Part = void (*)(const PlaneGroup &, Span, const float *, Vector, float *);

    static Part part_of(int64_t count) {
        constexpr Part all[] = {part<1>, part<2>, part<3>, part<4>,
                                part<5>, part<6>, part<7>, part<8>};
        return all[count - 1];
    }

    const PlaneTask &task_;
    const PlaneShape &shape_;
    int64_t pitch_;
    float *source_, *weights_, *results_;
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
