/// Loops of depthwise convolutions, compiled once for each instruction set.
#pragma once

#include "depthwise_task.hpp"
#include "kernels/vector_math.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int kSide = 2;                      ///< vectors of channels computed side by side
constexpr int64_t kChannels = kSide * kWidth; ///< as many channels
/// Results computed side by side, as many as keep their sums in registers.
constexpr int kResults = TIGHTSHIP_VECTOR_BYTES == 64 ? 7 : 4;

class Channels {
  public:
    Channels(const DepthwiseTask &task, int64_t first)
        : task_(task), shape_(*task.shape), first_(first), there_(shape_.channels - first),
          row_floats_(shape_.columns_reached() * kChannels),
          weights_(task.weights + first / kDepthwiseGroup * shape_.taps() * kDepthwiseGroup +
                   first % kDepthwiseGroup) {
        for (int side = 0; side < kSide; ++side)
            bias_[side] = load(task.bias + first + side * kWidth);
    }

    void rows(int64_t image, int64_t begin, int64_t end) {
        const int64_t reached = shape_.rows_reached(), height = shape_.source[0];
        int64_t filled = 0;
        for (int64_t y = begin; y < end; ++y) {
            const int64_t top = y * shape_.strides[0] - shape_.pads[0];
            const int64_t bottom = top + reached < height ? top + reached : height;
            for (filled = filled < top ? top : filled; filled < bottom; ++filled)
                fill(image, filled);
            row(image, y, top);
        }
    }

  private:
    float *ring_row(int64_t y) const {
        return task_.ring + y % shape_.rows_reached() * row_floats_;
    }

    int64_t offset(const ImageStrides &strides, int64_t channel) const {
        return channel / kLayoutBlock * strides.block + channel % kLayoutBlock;
    }

    void fill(int64_t image, int64_t y) {
        const ImageStrides &strides = shape_.source_strides;
        const int64_t shift = shape_.pads[1], most = shape_.columns_reached() - shift;
        const int64_t count = shape_.source[1] < most ? shape_.source[1] : most;
        const float *from = task_.source + image * strides.image + y * strides.row;
        float *to = ring_row(y) + shift * kChannels;
        for (int side = 0; side < kSide; ++side) {
            const int64_t there = there_ - side * kWidth;
            if (there <= 0)
                break;
            const float *own = from + offset(strides, first_ + side * kWidth);
            float *into = to + side * kWidth;
            const auto each = [&](auto function) {
                for (int64_t x = 0; x < count; ++x) {
                    const float *pixel = own + x * strides.pixel;
                    __builtin_prefetch(pixel + strides.row);
                    store(into + x * kChannels, function(load_some(pixel, there)));
                }
            };
            if (shape_.swishes_before)
                each(swish);
            else
                each([](Vector value) { return value; });
        }
    }

    /// Operands of one row of the kernel: its weights, and the row of the source.
    struct TapRow {
        const float *weights, *source;
    };

    void row(int64_t image, int64_t y, int64_t top) {
        count_ = 0;
        for (int64_t tap = 0; tap < shape_.kernel[0]; ++tap) {
            const int64_t from = top + tap * shape_.dilations[0];
            if (from >= 0 && from < shape_.source[0])
                taps_[count_++] = {weights_ + tap * shape_.kernel[1] * kDepthwiseGroup,
                                   ring_row(from)};
        }
        Vector total[kSide] = {};
        switch (shape_.strides[1]) {
        case 1:
            results<1>(image, y, total);
            break;
        case 2:
            results<2>(image, y, total);
            break;
        default:
            results<0>(image, y, total);
        }
        if (task_.means == nullptr)
            return;
        float *means = task_.means + (image * shape_.target[0] + y) * shape_.channels + first_;
        const float share = 1.0F / static_cast<float>(shape_.target[1]);
        for (int side = 0; side < kSide && there_ > side * kWidth; ++side)
            store_some(means + side * kWidth, total[side] * share, there_ - side * kWidth);
    }

    /// Computes results `kStride` apart in the source; 0 if the stride is only known at run time.
    template <int kStride> void results(int64_t image, int64_t y, Vector (&total)[kSide]) {
        int64_t x = 0;
        for (; x + kResults <= shape_.target[1]; x += kResults)
            some<kStride, kResults>(image, y, x, total);
        for (; x < shape_.target[1]; ++x)
            some<kStride, 1>(image, y, x, total);
    }

    template <int kStride, int kCount>
    void some(int64_t image, int64_t y, int64_t x, Vector (&total)[kSide]) {
        Vector sums[kCount][kSide];
#pragma GCC unroll 8
        for (int index = 0; index < kCount; ++index)
            for (int side = 0; side < kSide; ++side)
                sums[index][side] = bias_[side];
        const int64_t step = (kStride == 0 ? shape_.strides[1] : kStride) * kChannels;
        const int64_t tap_step = shape_.dilations[1] * kChannels;
        for (const TapRow *tap = taps_; tap < taps_ + count_; ++tap) {
            const float *weights = tap->weights, *from = tap->source + x * step;
            for (int64_t left = shape_.kernel[1]; left > 0; --left) {
                Vector factors[kSide];
                for (int side = 0; side < kSide; ++side)
                    factors[side] = load(weights + side * kWidth);
#pragma GCC unroll 8
                for (int index = 0; index < kCount; ++index)
                    for (int side = 0; side < kSide; ++side)
                        sums[index][side] +=
                            factors[side] * load(from + index * step + side * kWidth);
                from += tap_step;
                weights += kDepthwiseGroup;
            }
        }
        finish<kCount>(image, y, x, sums, total);
    }

    template <int kCount>
    void finish(int64_t image, int64_t y, int64_t x, Vector (&sums)[kCount][kSide],
                Vector (&total)[kSide]) {
        if (shape_.swishes_after)
            each<kCount>(sums, swish);
        else
            each<kCount>(sums, [low = spread(shape_.low), high = spread(shape_.high)](Vector x) {
                const Vector raised = x < low ? low : x;
                return raised > high ? high : raised;
            });
        const ImageStrides &strides = shape_.target_strides;
        float *to = task_.target + image * strides.image + y * strides.row + x * strides.pixel;
        for (int side = 0; side < kSide && there_ > side * kWidth; ++side) {
            float *own = to + offset(strides, first_ + side * kWidth);
#pragma GCC unroll 8
            for (int index = 0; index < kCount; ++index) {
                store_some(own + index * strides.pixel, sums[index][side], there_ - side * kWidth);
                total[side] += sums[index][side];
            }
        }
    }

    template <int kCount, class Function>
    static void each(Vector (&sums)[kCount][kSide], Function function) {
#pragma GCC unroll 8
        for (int index = 0; index < kCount; ++index)
            for (int side = 0; side < kSide; ++side)
                sums[index][side] = function(sums[index][side]);
    }

    const DepthwiseTask &task_;
    const DepthwiseShape &shape_;
    int64_t first_, there_; ///< first channel, and number of channels from it on
    int64_t row_floats_;
    const float *weights_;
    Vector bias_[kSide];
    TapRow taps_[kDepthwiseRows];
    int count_ = 0;
};

} // namespace

void convolve(const DepthwiseTask &task, const DepthwisePart &part) {
    const int64_t height = task.shape->target[0];
    const int64_t end = part.group_end * kDepthwiseGroup;
    const int64_t floats = task.shape->rows_reached() * task.shape->columns_reached() * kChannels;
    __builtin_memset(task.ring, 0, static_cast<size_t>(floats) * sizeof(float));
    for (int64_t row = part.first_row; row < part.row_end;) {
        const int64_t image = row / height, first = row - image * height;
        const int64_t rest = part.row_end - image * height;
        const int64_t last = rest < height ? rest : height;
        for (int64_t channel = part.first_group * kDepthwiseGroup;
             channel < end && channel < task.shape->channels; channel += kChannels)
            Channels(task, channel).rows(image, first, last);
        row = image * height + last;
    }
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
