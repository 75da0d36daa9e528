#include "tightship/kernels/clones.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/kernels/training.hpp"

#include "tightship/parallel.hpp"

#include <cmath>

namespace tightship::kernels {

namespace {

constexpr int64_t kGrain = 16384;

/// What a kind of update does to elements [begin, end).
struct Factors {
    float rate, first, second, first_rest, second_rest, epsilon;
};

TIGHTSHIP_CLONES void descend(const float *weight, const float *gradient, float *target,
                              int64_t begin, int64_t end, float rate) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = begin; index < end; ++index)
        target[index] = weight[index] - rate * gradient[index];
}

TIGHTSHIP_CLONES void descend_by_velocity(std::array<const float *, 3> reads,
                                          std::array<float *, 2> writes, int64_t begin, int64_t end,
                                          const Factors &by) {
    const auto [weight, gradient, velocity] = reads;
    const auto [target, kept] = writes;
    const float rate = by.rate, momentum = by.first;
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = begin; index < end; ++index) {
        const float next = velocity[index] * momentum + gradient[index];
        kept[index] = next;
        target[index] = weight[index] - rate * next;
    }
}

TIGHTSHIP_CLONES void descend_by_moments(std::array<const float *, 4> reads,
                                         std::array<float *, 3> writes, int64_t begin, int64_t end,
                                         const Factors &by) {
    const auto [weight, gradient, mean, square] = reads;
    const auto [target, mean_next, square_next] = writes;
    const auto [rate, first, second, first_rest, second_rest, epsilon] = by;
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = begin; index < end; ++index) {
        const float slope = gradient[index];
        const float m = mean[index] * first + slope * first_rest;
        const float v = square[index] * second + slope * slope * second_rest;
        mean_next[index] = m;
        square_next[index] = v;
        target[index] = weight[index] - rate * m / (__builtin_sqrtf(v) + epsilon);
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
            return reinterpret_cast<const float *>(operands[index]);
        };
        const auto write = [&](size_t index) {
            return reinterpret_cast<float *>(operands[reads() + index]);
        };
        const Factors by = factors(operands);
        parallel_for(threads, spec_.count, kGrain, [&](int64_t begin, int64_t end) {
            switch (rule_) {
            case Rule::kSgd:
                return descend(read(0), read(1), write(0), begin, end, by.rate);
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
        std::vector<Reach> all(tensors(), dense(spec_.count, sizeof(float)));
        if (rule_ == Rule::kAdam)
            all.push_back({0, sizeof(int64_t)});
        if (spec_.has_rate)
            all.push_back({0, sizeof(float)});
        all.insert(all.end(), written(), dense(spec_.count, sizeof(float)));
        return all;
    }

  private:
    /// Large operands that are read.
    size_t tensors() const { return rule_ == Rule::kAdam ? 4 : rule_ == Rule::kMomentum ? 3 : 2; }

    size_t reads() const {
        return tensors() + (rule_ == Rule::kAdam ? 1 : 0) + (spec_.has_rate ? 1 : 0);
    }

    Factors factors(std::span<char *const> operands) const {
        double rate = spec_.rate, epsilon = spec_.epsilon;
        if (spec_.has_rate)
            rate = static_cast<double>(*reinterpret_cast<const float *>(operands[reads() - 1]));
        if (rule_ == Rule::kAdam) {
            const auto step =
                static_cast<double>(*reinterpret_cast<const int64_t *>(operands[tensors()]));
            const double root = std::sqrt(1 - std::pow(spec_.second, step));
            rate *= root / (1 - std::pow(spec_.first, step));
            epsilon *= root;
        }
        const auto narrow = [](double x) { return static_cast<float>(x); };
        return {narrow(rate),
                narrow(spec_.first),
                narrow(spec_.second),
                narrow(1 - spec_.first),
                narrow(1 - spec_.second),
                narrow(epsilon)};
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
    counted({spec.count, kItemMax});
    for (const auto &[name, rule] : kRules)
        if (spec.rule == name)
            return std::make_shared<UpdateKernel>(spec, rule);
    return nullptr;
}

} // namespace tightship::kernels
