#include "tightship/kernels/movement/sample.hpp"

#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace tightship::kernels {

namespace {

constexpr size_t kAxesMax = 3;
constexpr int64_t kTapsMax = 4; ///< along an axis
constexpr int64_t kSampleGrain = 1 << 12;
constexpr int64_t kLengthMax = 1 << 24; ///< whose positions floats represent exactly
constexpr float kCubic = -0.75F;        ///< parameter of Keys' kernel in ONNX

/// Contribution of one axis: offsets into the source, and their weights.
struct AxisTaps {
    std::array<int64_t, kTapsMax> offsets;
    std::array<float, kTapsMax> weights;
};

/// Elements that contribute to a position.
struct SampleTaps {
    int64_t count;
    std::array<int64_t, 64> offsets;
    std::array<float, 64> weights;
};

float reflected(float x, float low, float high) {
    const float range = high - low;
    if (!(range > 0) || (x >= low && x <= high))
        return std::clamp(x, low, high);
    const float past = x < low ? low - x : x - high;
    const float turns = std::floor(past / range), rest = past - turns * range;
    return (std::fmod(turns, 2.0F) == 0) == (x < low) ? low + rest : high - rest;
}

void cubic(float x, std::array<float, kTapsMax> &weights) {
    const auto far = [](float d) {
        return ((kCubic * d - 5 * kCubic) * d + 8 * kCubic) * d - 4 * kCubic;
    };
    const auto near = [](float d) { return ((kCubic + 2) * d - (kCubic + 3)) * d * d + 1; };
    weights = {far(x + 1), near(x), near(1 - x), far(2 - x)};
}

TIGHTSHIP_CLONES void blend_together(const float *source, const int64_t *offsets,
                                     const float *weights, int64_t taps, float *target,
                                     int64_t channels) {
    map_row(source + offsets[0], target, channels, [=](float x) { return x * weights[0]; });
    for (int64_t tap = 1; tap < taps; ++tap) {
        const float weight = weights[tap];
        zip_row(source + offsets[tap], target, target, channels,
                [=](float x, float sum) { return sum + x * weight; });
    }
}

Reach floats(Reach elements) {
    return {elements.low * int64_t{sizeof(float)}, elements.high * int64_t{sizeof(float)}};
}

class Sample : public Kernel {
  public:
    explicit Sample(const Sampling &sampling) : s_(sampling) {
        for (const int64_t length : s_.lengths) {
            low_.push_back(s_.aligns_corners ? 0.0F : -0.5F);
            high_.push_back(static_cast<float>(length) - (s_.aligns_corners ? 1.0F : 0.5F));
        }
    }

    void run(std::span<char *const> operands, int threads) const override {
        const auto *source = reinterpret_cast<const float *>(operands[0]);
        const auto *grid = reinterpret_cast<const float *>(operands[1]);
        auto *target = reinterpret_cast<float *>(operands[2]);
        const auto axes = static_cast<int64_t>(s_.lengths.size());
        const int64_t grain = kSampleGrain / std::max<int64_t>(s_.channels, 1);
        parallel_for(threads, s_.batch * s_.positions, grain, [&](int64_t begin, int64_t end) {
            SampleTaps taps;
            for (int64_t index = begin; index < end; ++index) {
                const int64_t image = index / s_.positions, position = index % s_.positions;
                find(grid + index * axes, taps);
                write(source + image * s_.source_steps[0], taps,
                      target + image * s_.target_batch_step + position * s_.target_position_step);
            }
        });
    }

    std::vector<Reach> reach() const override {
        Dims shape{s_.batch, s_.channels}, steps = s_.source_steps;
        shape.insert(shape.end(), s_.lengths.begin(), s_.lengths.end());
        const auto axes = static_cast<int64_t>(s_.lengths.size());
        return {floats(reach_of(shape, steps, 1)),
                dense(counted({s_.batch, s_.positions, axes}), sizeof(float)),
                floats(reach_of(
                    {s_.batch, s_.positions, s_.channels},
                    {s_.target_batch_step, s_.target_position_step, s_.target_channel_step}, 1))};
    }

  private:
    void write(const float *from, const SampleTaps &taps, float *to) const {
        if (s_.source_steps[1] == 1 && s_.target_channel_step == 1)
            return blend_together(from, taps.offsets.data(), taps.weights.data(), taps.count, to,
                                  s_.channels);
        for (int64_t channel = 0; channel < s_.channels; ++channel) {
            float sum = 0;
            for (int64_t tap = 0; tap < taps.count; ++tap)
                sum += from[taps.offsets[tap]] * taps.weights[tap];
            to[channel * s_.target_channel_step] = sum;
            from += s_.source_steps[1];
        }
    }

    /// Finds the elements and weights of a position. With padding by zeros, elements beyond the
    /// image have no weight; offsets are always inside.
    void find(const float *place, SampleTaps &taps) const {
        taps.count = 1;
        taps.offsets[0] = 0;
        taps.weights[0] = 1;
        const size_t axes = s_.lengths.size();
        for (size_t axis = 0; axis < axes; ++axis) {
            AxisTaps own;
            const int64_t count = along(axis, place[axes - 1 - axis], own);
            const int64_t before = taps.count;
            for (int64_t tap = count; tap-- > 0;)
                for (int64_t old = 0; old < before; ++old) {
                    taps.offsets[tap * before + old] = taps.offsets[old] + own.offsets[tap];
                    taps.weights[tap * before + old] = taps.weights[old] * own.weights[tap];
                }
            taps.count = before * count;
        }
    }

    int64_t along(size_t axis, float normal, AxisTaps &taps) const {
        const auto length = static_cast<float>(s_.lengths[axis]);
        float x =
            s_.aligns_corners ? (normal + 1) / 2 * (length - 1) : ((normal + 1) * length - 1) / 2;
        if (s_.interpolation == Interpolation::kNearest)
            x = std::nearbyint(x);
        if (x < low_[axis] || x > high_[axis]) {
            if (s_.beyond == Beyond::kBorder)
                x = std::clamp(x, 0.0F, length - 1);
            else if (s_.beyond == Beyond::kReflection)
                x = reflected(x, low_[axis], high_[axis]);
        }
        const float first = std::floor(x);
        switch (s_.interpolation) {
        case Interpolation::kNearest:
            taps.weights[0] = 1;
            return settle(axis, x, 1, taps);
        case Interpolation::kLinear:
            taps.weights[0] = 1 - (x - first);
            taps.weights[1] = x - first;
            return settle(axis, first, 2, taps);
        case Interpolation::kCubic:
            break;
        }
        cubic(x - first, taps.weights);
        return settle(axis, first - 1, 4, taps);
    }

    /// Sets the offsets of `count` elements from `first` on; those outside an image padded with
    /// zeros get no weight. NaN counts as far outside. Returns `count`.
    int64_t settle(size_t axis, float first, int64_t count, AxisTaps &taps) const {
        const auto last = static_cast<float>(s_.lengths[axis] - 1);
        for (int64_t tap = 0; tap < count; ++tap) {
            float at = first + static_cast<float>(tap);
            if (s_.beyond == Beyond::kReflection)
                at = reflected(at, low_[axis], high_[axis]);
            const bool is_inside = at >= 0 && at <= last;
            if (!is_inside && s_.beyond == Beyond::kZeros)
                taps.weights[tap] = 0;
            at = at >= 0 ? std::min(at, last) : 0;
            taps.offsets[tap] = static_cast<int64_t>(at) * s_.source_steps[axis + 2];
        }
        return count;
    }

    Sampling s_;
    std::vector<float> low_, high_;
};

} // namespace

std::shared_ptr<const Kernel> sample(const Sampling &sampling) {
    require(!sampling.lengths.empty() && sampling.lengths.size() <= kAxesMax,
            "a kernel samples along too many axes");
    for (const int64_t length : sampling.lengths)
        require(length > 0 && length <= kLengthMax, "a kernel samples too long an axis");
    auto kernel = std::make_shared<Sample>(sampling);
    kernel->reach();
    return kernel;
}

} // namespace tightship::kernels
