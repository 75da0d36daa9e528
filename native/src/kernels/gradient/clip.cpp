#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/gradient/training.hpp"
#include "tightship/kernels/reach.hpp"

#include "tightship/parallel.hpp"

#include <algorithm>
#include <cmath>

namespace tightship::kernels {

namespace {

constexpr int64_t kChunk = 16384;
constexpr int64_t kLanes = 16;
constexpr double kLeast = 1e-6; ///< added to a norm, to avoid a division by zero

TIGHTSHIP_CLONES double squares(const float *x, int64_t length) {
    double lanes[kLanes] = {};
    int64_t index = 0;
    for (; index + kLanes <= length; index += kLanes)
        for (int64_t lane = 0; lane < kLanes; ++lane) {
            const auto value = static_cast<double>(x[index + lane]);
            lanes[lane] += value * value;
        }
    double total = 0;
    for (; index < length; ++index)
        total += static_cast<double>(x[index]) * static_cast<double>(x[index]);
    for (const double lane : lanes)
        total += lane;
    return total;
}

/// Sum of squares that keeps the sums of chunks, and adds them in their order.
class SquaresAdded : public Kernel {
  public:
    SquaresAdded(int64_t count, bool has_total) : count_(count), has_total_(has_total) {}

    int64_t scratch_bytes(int) const override {
        return chunks() * static_cast<int64_t>(sizeof(double));
    }

    void run(std::span<char *const> operands, int threads) const override {
        const size_t target = has_total_ ? 2 : 1;
        const auto *x = reinterpret_cast<const float *>(operands[0]);
        auto *sums = reinterpret_cast<double *>(operands[target + 1]);
        parallel_for(threads, chunks(), 1, [&](int64_t begin, int64_t end) {
            for (int64_t chunk = begin; chunk < end; ++chunk)
                sums[chunk] =
                    squares(x + chunk * kChunk, std::min(kChunk, count_ - chunk * kChunk));
        });
        double total = has_total_ ? *reinterpret_cast<const double *>(operands[1]) : 0.0;
        for (int64_t chunk = 0; chunk < chunks(); ++chunk)
            total += sums[chunk];
        *reinterpret_cast<double *>(operands[target]) = total;
    }

    std::vector<Reach> reach() const override {
        std::vector<Reach> all{dense(count_, sizeof(float))};
        all.insert(all.end(), has_total_ ? 2 : 1, {0, sizeof(double)});
        return all;
    }

  private:
    int64_t chunks() const { return std::max<int64_t>((count_ + kChunk - 1) / kChunk, 1); }

    int64_t count_;
    bool has_total_;
};

class ClipScale : public Kernel {
  public:
    ClipScale(double limit, std::string name) : limit_(limit), name_(std::move(name)) {}

    void run(std::span<char *const> operands, int) const override {
        const double norm = std::sqrt(*reinterpret_cast<const double *>(operands[0]));
        if (!std::isfinite(norm))
            throw KernelError("Node `" + name_ + "` has gradients whose norm is " +
                              (std::isnan(norm) ? "not a number" : "infinite") +
                              "; it must be finite. No weight was changed.");
        const double scale = std::min(limit_ / (norm + kLeast), 1.0);
        *reinterpret_cast<float *>(operands[1]) = static_cast<float>(scale);
        *reinterpret_cast<float *>(operands[2]) = static_cast<float>(norm);
    }

    size_t written() const override { return 2; }

    std::vector<Reach> reach() const override {
        return {{0, sizeof(double)}, {0, sizeof(float)}, {0, sizeof(float)}};
    }

  private:
    double limit_;
    std::string name_;
};

} // namespace

std::shared_ptr<const Kernel> squares_added(int64_t count, bool has_total) {
    counted({count, kItemMax});
    return std::make_shared<SquaresAdded>(count, has_total);
}

std::shared_ptr<const Kernel> clip_scale(double limit, std::string name) {
    return std::make_shared<ClipScale>(limit, std::move(name));
}

} // namespace tightship::kernels
