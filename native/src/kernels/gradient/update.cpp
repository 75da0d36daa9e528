#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/gradient/training.hpp"
#include "tightship/kernels/reach.hpp"

#include "tightship/parallel.hpp"

#include <cmath>
#include <cstring>

namespace tightship::kernels {

namespace {

constexpr int64_t kGrain = 16384;

/// Coefficients of an update's effect on each element. A slope is `gradient * scale + weight *
/// decay`; the second term is absent if the weight decays by a factor of its own.
struct Factors {
    float rate, scale, decay, kept;
    float first, second, first_rest, second_rest, epsilon;
};

TIGHTSHIP_CLONES void descend(const float *weight, const float *gradient, float *target,
                              int64_t begin, int64_t end, const Factors &by) {
    const float rate = by.rate, scale = by.scale, decay = by.decay;
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = begin; index < end; ++index)
        target[index] = weight[index] - rate * (gradient[index] * scale + weight[index] * decay);
}

/// Steps by `slope * first_rest + velocity * second`; the factors are 0 and 1 except for
/// Nesterov's.
TIGHTSHIP_CLONES void descend_by_velocity(std::array<const float *, 3> reads,
                                          std::array<float *, 2> writes, int64_t begin, int64_t end,
                                          const Factors &by) {
    const auto [weight, gradient, velocity] = reads;
    const auto [target, kept] = writes;
    const float rate = by.rate, scale = by.scale, decay = by.decay;
    const float momentum = by.first, ahead = by.second, direct = by.first_rest;
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = begin; index < end; ++index) {
        const float slope = gradient[index] * scale + weight[index] * decay;
        const float next = velocity[index] * momentum + slope;
        kept[index] = next;
        target[index] = weight[index] - rate * (slope * direct + next * ahead);
    }
}

TIGHTSHIP_CLONES void descend_by_moments(std::array<const float *, 4> reads,
                                         std::array<float *, 3> writes, int64_t begin, int64_t end,
                                         const Factors &by) {
    const auto [weight, gradient, mean, square] = reads;
    const auto [target, mean_next, square_next] = writes;
    const auto [rate, scale, decay, kept, first, second, first_rest, second_rest, epsilon] = by;
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = begin; index < end; ++index) {
        const float slope = gradient[index] * scale;
        const float m = mean[index] * first + slope * first_rest;
        const float v = square[index] * second + slope * slope * second_rest;
        mean_next[index] = m;
        square_next[index] = v;
        target[index] = weight[index] * kept - rate * m / (__builtin_sqrtf(v) + epsilon);
    }
}

TIGHTSHIP_CLONES void share(const float *old, const float *added, float *target, int64_t begin,
                            int64_t end, float kept, float new_share) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = begin; index < end; ++index)
        target[index] = old[index] * kept + added[index] * new_share;
}

enum class Rule { kSgd, kMomentum, kAdam, kRunning };

class UpdateKernel : public Kernel {
  public:
    UpdateKernel(const UpdateSpec &spec, Rule rule) : spec_(spec), rule_(rule) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto read = [&](size_t index) {
            const int64_t first = index == kGradient ? 0 : spec_.start;
            return reinterpret_cast<const float *>(operands[index]) + first;
        };
        const auto write = [&](size_t index) {
            return reinterpret_cast<float *>(operands[reads() + index]) + spec_.start;
        };
        const Factors by = factors(operands);
        copy_others(operands);
        parallel_for(threads, spec_.count, kGrain, [&](int64_t begin, int64_t end) {
            switch (rule_) {
            case Rule::kSgd:
                return descend(read(0), read(1), write(0), begin, end, by);
            case Rule::kMomentum:
                return descend_by_velocity({read(0), read(1), read(2)}, {write(0), write(1)}, begin,
                                           end, by);
            case Rule::kAdam:
                return descend_by_moments({read(0), read(1), read(2), read(3)},
                                          {write(0), write(1), write(2)}, begin, end, by);
            case Rule::kRunning:
                return share(read(0), read(1), write(0), begin, end, by.first, by.second);
            }
        });
    }

    size_t written() const override {
        return rule_ == Rule::kAdam ? 3 : rule_ == Rule::kMomentum ? 2 : 1;
    }

    std::vector<Reach> reach() const override {
        std::vector<Reach> all(tensors(), dense(spec_.whole, sizeof(float)));
        all[kGradient] = dense(spec_.count, sizeof(float));
        if (rule_ == Rule::kAdam)
            all.push_back({0, sizeof(int64_t)});
        all.insert(all.end(), scalars(), {0, sizeof(float)});
        all.insert(all.end(), written(), dense(spec_.whole, sizeof(float)));
        return all;
    }

  private:
    static constexpr size_t kGradient = 1;

    /// Copies elements that are not updated, if results are not written over their inputs.
    void copy_others(std::span<char *const> operands) const {
        const auto stop = spec_.start + spec_.count;
        for (size_t index = 0; index < written(); ++index) {
            const char *source = operands[index == 0 ? 0 : kGradient + index];
            char *target = operands[reads() + index];
            if (source == target)
                continue;
            std::memcpy(target, source, bytes(spec_.start));
            std::memcpy(target + bytes(stop), source + bytes(stop), bytes(spec_.whole - stop));
        }
    }

    static size_t bytes(int64_t count) { return static_cast<size_t>(count) * sizeof(float); }

    /// Returns the number of large operands that are read.
    size_t tensors() const { return rule_ == Rule::kAdam ? 4 : rule_ == Rule::kMomentum ? 3 : 2; }

    /// Returns the number of operands among rate and scale.
    size_t scalars() const { return (spec_.has_rate ? 1 : 0) + (spec_.has_scale ? 1 : 0); }

    size_t reads() const { return tensors() + (rule_ == Rule::kAdam ? 1 : 0) + scalars(); }

    Factors factors(std::span<char *const> operands) const {
        const auto scalar = [&](size_t before_last) {
            return *reinterpret_cast<const float *>(operands[reads() - 1 - before_last]);
        };
        const auto narrow = [](double x) { return static_cast<float>(x); };
        double rate = spec_.rate, epsilon = spec_.epsilon;
        if (spec_.has_rate)
            rate = static_cast<double>(scalar(spec_.has_scale ? 1 : 0));
        Factors by{};
        by.scale = spec_.has_scale ? scalar(0) : 1.0F;
        by.decay = narrow(spec_.decay);
        by.kept = narrow(1 - rate * spec_.decay);
        by.first_rest = narrow(1 - spec_.first);
        by.second_rest = narrow(1 - spec_.second);
        by.first = narrow(spec_.first);
        by.second = narrow(spec_.second);
        if (rule_ == Rule::kMomentum) {
            by.first_rest = spec_.second != 0 ? 1.0F : 0.0F;
            by.second = spec_.second != 0 ? by.first : 1.0F;
        } else if (rule_ == Rule::kAdam) {
            const auto step =
                static_cast<double>(*reinterpret_cast<const int64_t *>(operands[tensors()]));
            const double root = std::sqrt(1 - std::pow(spec_.second, step));
            rate *= root / (1 - std::pow(spec_.first, step));
            epsilon *= root;
        }
        by.rate = narrow(rate);
        by.epsilon = narrow(epsilon);
        return by;
    }

    UpdateSpec spec_;
    Rule rule_;
};

} // namespace

std::shared_ptr<const Kernel> update(const UpdateSpec &spec) {
    constexpr std::pair<const char *, Rule> kRules[] = {{"SgdUpdate", Rule::kSgd},
                                                        {"MomentumUpdate", Rule::kMomentum},
                                                        {"AdamUpdate", Rule::kAdam},
                                                        {"RunningUpdate", Rule::kRunning}};
    counted({spec.whole, kItemMax});
    require_within(spec.start, spec.count, spec.whole);
    for (const auto &[name, rule] : kRules)
        if (spec.rule == name)
            return std::make_shared<UpdateKernel>(spec, rule);
    return nullptr;
}

} // namespace tightship::kernels
