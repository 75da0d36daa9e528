#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/gradient/training.hpp"
#include "tightship/kernels/reach.hpp"

#include "tightship/parallel.hpp"

#include <cstring>

namespace tightship::kernels {

namespace {

constexpr int64_t kChannels = 64; ///< processed at once if channels are last

/// Replaces the best elements so far by larger ones of a row, and their positions.
TIGHTSHIP_CLONES void keep_larger(const float *x, int32_t place, float *best, int32_t *places,
                                  int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index) {
        const bool is_larger = x[index] > best[index];
        best[index] = is_larger ? x[index] : best[index];
        places[index] = is_larger ? place : places[index];
    }
}

class LargestGradient : public Kernel {
  public:
    explicit LargestGradient(const PoolSpec &spec)
        : spec_(spec), pixels_(spec.source[0] * spec.source[1]),
          results_(spec.target[0] * spec.target[1]), width_(spec.is_last ? kChannels : 1),
          blocks_((spec.channels + width_ - 1) / width_) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *dy = reinterpret_cast<const float *>(operands[0]);
        const auto *x = reinterpret_cast<const float *>(operands[1]);
        auto *dx = reinterpret_cast<float *>(operands[2]);
        parallel_for(threads, spec_.batch * blocks_, 1, [&](int64_t begin, int64_t end) {
            for (int64_t task = begin; task < end; ++task)
                block(dy, x, dx, task / blocks_, task % blocks_ * width_);
        });
    }

    std::vector<Reach> reach() const override {
        const auto image = [&](int64_t pixels) {
            return dense(spec_.batch * spec_.channels * pixels, sizeof(float));
        };
        return {image(results_), image(pixels_), image(pixels_)};
    }

  private:
    int64_t step() const { return spec_.is_last ? spec_.channels : 1; }

    /// Computes channels [first, first + width) of one image.
    void block(const float *dy, const float *x, float *dx, int64_t image, int64_t first) const {
        const int64_t width = std::min(width_, spec_.channels - first);
        const int64_t channel = spec_.is_last ? first : first * pixels_;
        const int64_t start = image * spec_.channels * pixels_ + channel;
        dy += image * spec_.channels * results_ + (spec_.is_last ? first : first * results_);
        for (int64_t pixel = 0; pixel < pixels_; ++pixel)
            std::memset(dx + start + pixel * step(), 0, static_cast<size_t>(width) * sizeof(float));
        for (int64_t row = 0; row < spec_.target[0]; ++row)
            for (int64_t column = 0; column < spec_.target[1]; ++column, dy += step())
                window(dy, x + start, dx + start, {row, column}, width);
    }

    void window(const float *dy, const float *x, float *dx, std::array<int64_t, 2> at,
                int64_t width) const {
        alignas(64) float best[kChannels];
        alignas(64) int32_t places[kChannels];
        bool is_first = true;
        for (int64_t down = 0; down < spec_.kernel[0]; ++down) {
            const int64_t row = place(0, at[0], down);
            if (row < 0 || row >= spec_.source[0])
                continue;
            for (int64_t across = 0; across < spec_.kernel[1]; ++across) {
                const int64_t column = place(1, at[1], across);
                if (column < 0 || column >= spec_.source[1])
                    continue;
                const auto pixel = static_cast<int32_t>(row * spec_.source[1] + column);
                const float *from = x + pixel * step();
                if (is_first) {
                    std::copy_n(from, width, best);
                    std::fill_n(places, width, pixel);
                    is_first = false;
                } else {
                    keep_larger(from, pixel, best, places, width);
                }
            }
        }
        if (is_first)
            return;
        for (int64_t index = 0; index < width; ++index)
            dx[places[index] * step() + index] += dy[index];
    }

    int64_t place(size_t axis, int64_t target, int64_t tap) const {
        return target * spec_.strides[axis] - spec_.begin[axis] + tap * spec_.dilations[axis];
    }

    PoolSpec spec_;
    int64_t pixels_, results_, width_, blocks_;
};

} // namespace

std::shared_ptr<const Kernel> largest_gradient(const PoolSpec &spec) {
    for (const auto &pixels : {spec.source, spec.target}) {
        counted({spec.batch, spec.channels, pixels[0], pixels[1], kItemMax}, 1);
        require(pixels[0] * pixels[1] <= INT32_MAX, "an image has too many pixels");
    }
    counted({spec.kernel[0], spec.kernel[1], spec.strides[0], spec.strides[1], spec.dilations[0],
             spec.dilations[1]},
            1);
    return std::make_shared<LargestGradient>(spec);
}

} // namespace tightship::kernels
