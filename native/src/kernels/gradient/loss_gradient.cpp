#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/float_math.hpp"
#include "tightship/kernels/gradient/training.hpp"
#include "tightship/kernels/reach.hpp"

#include "tightship/parallel.hpp"

#include <cmath>

namespace tightship::kernels {

namespace {

/// Computes y = exp(x) times a number.
TIGHTSHIP_CLONES void weighed_powers(const float *x, float *y, int64_t length, float weight) {
    map_row(x, y, length,
            [=](float v) __attribute__((always_inline)) { return exponential(v) * weight; });
}

/// Computes y = exp(x) times numbers, each element by its own.
TIGHTSHIP_CLONES void weighed_columns(const float *x, const float *weights, float *y,
                                      int64_t length) {
    zip_row(x, weights, y, length, [](float v, float weight) __attribute__((always_inline)) {
        return exponential(v) * weight;
    });
}

class CrossEntropyGradient : public Kernel {
  public:
    CrossEntropyGradient(const LabelsSpec &spec, std::string name)
        : spec_(spec), name_(std::move(name)) {}

    int64_t scratch_bytes(int) const override {
        return spec_.outer * spec_.inner * static_cast<int64_t>(sizeof(float));
    }

    void run(std::span<char *const> operands, int threads) const override {
        const float loss = *reinterpret_cast<const float *>(operands[0]);
        const auto *logarithms = reinterpret_cast<const float *>(operands[1]);
        const auto *labels = reinterpret_cast<const int64_t *>(operands[2]);
        const auto *classes =
            reinterpret_cast<const float *>(spec_.has_weights ? operands[3] : nullptr);
        const size_t next = spec_.has_weights ? 4 : 3;
        auto *target = reinterpret_cast<float *>(operands[next]);
        auto *weights = reinterpret_cast<float *>(operands[next + 1]);
        weigh(labels, classes, loss, weights);
        const int64_t row = spec_.classes * spec_.inner;
        parallel_for(threads, spec_.outer, std::max<int64_t>(4096 / row, 1),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t o = begin; o < end; ++o)
                             image(logarithms + o * row, labels + o * spec_.inner,
                                   weights + o * spec_.inner, target + o * row);
                     });
    }

    std::vector<Reach> reach() const override {
        const Reach scores =
            dense(counted({spec_.outer, spec_.classes, spec_.inner}), sizeof(float));
        std::vector<Reach> all{{0, sizeof(float)},
                               scores,
                               dense(counted({spec_.outer, spec_.inner}), sizeof(int64_t))};
        if (spec_.has_weights)
            all.push_back(dense(spec_.classes, sizeof(float)));
        all.push_back(scores);
        return all;
    }

  private:
    bool is_ignored(int64_t label) const { return spec_.ignores && label == spec_.ignored; }

    /// Computes the weight of each label times the loss' gradient; zero for ignored labels. Throws
    /// KernelError for a label that is not a class.
    void weigh(const int64_t *labels, const float *classes, float loss, float *weights) const {
        double total = 0;
        for (int64_t index = 0; index < spec_.outer * spec_.inner; ++index) {
            const int64_t label = labels[index];
            if (is_ignored(label)) {
                weights[index] = 0;
                continue;
            }
            if (label < 0 || label >= spec_.classes)
                throw KernelError("Node `" + name_ + "` has a label of " + std::to_string(label) +
                                  " at position " + std::to_string(index) + "; classes are 0 to " +
                                  std::to_string(spec_.classes - 1) + ".");
            weights[index] = classes == nullptr ? 1.0F : classes[label];
            total += static_cast<double>(weights[index]);
        }
        const double factor = static_cast<double>(loss) / (spec_.is_mean ? total : 1.0);
        for (int64_t index = 0; index < spec_.outer * spec_.inner; ++index)
            if (!is_ignored(labels[index]))
                weights[index] = static_cast<float>(static_cast<double>(weights[index]) * factor);
    }

    void image(const float *x, const int64_t *labels, const float *weights, float *y) const {
        const int64_t inner = spec_.inner;
        if (inner == 1) {
            weighed_powers(x, y, spec_.classes, weights[0]);
        } else {
            for (int64_t c = 0; c < spec_.classes; ++c)
                weighed_columns(x + c * inner, weights, y + c * inner, inner);
        }
        for (int64_t pixel = 0; pixel < inner; ++pixel)
            if (weights[pixel] != 0.0F)
                y[labels[pixel] * inner + pixel] -= weights[pixel];
    }

    LabelsSpec spec_;
    std::string name_;
};

} // namespace

std::shared_ptr<const Kernel> cross_entropy_gradient(const LabelsSpec &spec, std::string name) {
    counted({spec.outer, spec.classes, spec.inner, kItemMax}, 1);
    return std::make_shared<CrossEntropyGradient>(spec, std::move(name));
}

} // namespace tightship::kernels
