#include "tightship/kernels/movement/taps.hpp"

#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kGrain = 1 << 14; ///< elements read below which a thread does not pay

TIGHTSHIP_CLONES void weigh(const float *x, float weight, float *y, int64_t length) {
    map_row(x, y, length, [=](float each) { return each * weight; });
}

TIGHTSHIP_CLONES void weigh_two(const float *x, float weight, const float *other,
                                float other_weight, float *y, int64_t length) {
    zip_row(x, other, y, length,
            [=](float one, float two) { return one * weight + two * other_weight; });
}

TIGHTSHIP_CLONES void add_weighed(const float *x, float weight, float *y, int64_t length) {
    zip_row(x, y, y, length, [=](float each, float sum) { return sum + each * weight; });
}

TIGHTSHIP_CLONES void larger(const float *x, const float *other, float *y, int64_t length) {
    zip_row(x, other, y, length,
            [](float one, float two) { return one >= two || one != one ? one : two; });
}

/// Applies one tap to every position of a row, onto the result of the taps before it.
TIGHTSHIP_CLONES void gather_first(const float *x, const int32_t *index, const float *weight,
                                   float *y, int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t place = 0; place < length; ++place)
        y[place] = x[index[place]] * weight[place];
}

TIGHTSHIP_CLONES void gather_next(const float *x, const int32_t *index, const float *weight,
                                  float *y, int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t place = 0; place < length; ++place)
        y[place] += x[index[place]] * weight[place];
}

TIGHTSHIP_CLONES void gather_larger(const float *x, const int32_t *index, float *y,
                                    int64_t length) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t place = 0; place < length; ++place) {
        const float one = x[index[place]];
        y[place] = one >= y[place] || one != one ? one : y[place];
    }
}

class Axis {
  public:
    explicit Axis(const Taps &taps)
        : before_(taps.before), length_(taps.length), after_(taps.after),
          positions_(taps.positions), indices_(taps.indices.begin(), taps.indices.end()),
          weights_(taps.weights),
          taps_(static_cast<int64_t>(taps.indices.size()) / taps.positions) {}

    int64_t size() const { return before_ * positions_ * after_; }
    int64_t source_size() const { return before_ * length_ * after_; }

    void run(const float *source, float *target, int threads) const {
        const bool is_row = after_ == 1;
        const int64_t each = std::max<int64_t>(taps_ * (is_row ? positions_ : after_), 1);
        const int64_t rows = is_row ? before_ : before_ * positions_;
        parallel_for(threads, rows, kGrain / each, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row)
                if (is_row)
                    write_row(source + row * length_, target + row * positions_);
                else
                    write_position(source + row / positions_ * length_ * after_, row % positions_,
                                   target + row * after_);
        });
    }

  private:
    void write_row(const float *from, float *to) const {
        if (weights_.empty())
            for (int64_t place = 0; place < positions_; ++place)
                to[place] = from[indices_[place]];
        else
            gather_first(from, indices_.data(), weights_.data(), to, positions_);
        for (int64_t tap = 1; tap < taps_; ++tap) {
            const int32_t *index = indices_.data() + tap * positions_;
            if (weights_.empty())
                gather_larger(from, index, to, positions_);
            else
                gather_next(from, index, weights_.data() + tap * positions_, to, positions_);
        }
    }

    void write_position(const float *from, int64_t position, float *to) const {
        const auto part = [&](int64_t tap) {
            return from + indices_[tap * positions_ + position] * after_;
        };
        if (weights_.empty()) {
            larger(part(0), part(taps_ > 1 ? 1 : 0), to, after_);
            for (int64_t tap = 2; tap < taps_; ++tap)
                larger(part(tap), to, to, after_);
            return;
        }
        const auto weight = [&](int64_t tap) { return weights_[tap * positions_ + position]; };
        if (taps_ == 1)
            return weigh(part(0), weight(0), to, after_);
        weigh_two(part(0), weight(0), part(1), weight(1), to, after_);
        for (int64_t tap = 2; tap < taps_; ++tap)
            add_weighed(part(tap), weight(tap), to, after_);
    }

    int64_t before_, length_, after_, positions_;
    std::vector<int32_t> indices_;
    std::vector<float> weights_;
    int64_t taps_;
};

class AxisByAxis : public Kernel {
  public:
    explicit AxisByAxis(const std::vector<Taps> &axes) : axes_(axes.begin(), axes.end()) {}

    int64_t scratch_bytes(int) const override {
        int64_t size = 0;
        for (size_t axis = 0; axis + 1 < axes_.size(); ++axis)
            size += axes_[axis].size();
        return size * static_cast<int64_t>(sizeof(float));
    }

    void run(std::span<char *const> operands, int threads) const override {
        const auto *source = reinterpret_cast<const float *>(operands[0]);
        auto *scratch = axes_.size() > 1 ? reinterpret_cast<float *>(operands[2]) : nullptr;
        for (const Axis &axis : axes_) {
            const bool is_last = &axis == &axes_.back();
            float *target = is_last ? reinterpret_cast<float *>(operands[1]) : scratch;
            axis.run(source, target, threads);
            source = target;
            scratch += is_last ? 0 : axis.size();
        }
    }

    std::vector<Reach> reach() const override {
        return {dense(axes_.front().source_size(), sizeof(float)),
                dense(axes_.back().size(), sizeof(float))};
    }

  private:
    std::vector<Axis> axes_;
};

} // namespace

std::shared_ptr<const Kernel> taps(const std::vector<Taps> &axes) {
    require(!axes.empty() && axes.size() <= kRankMax, "a kernel goes along no axis");
    for (size_t index = 0; index < axes.size(); ++index) {
        const Taps &axis = axes[index];
        const int64_t source = counted({axis.before, axis.length, axis.after});
        counted({axis.before, axis.positions, axis.after});
        const auto given = static_cast<int64_t>(axis.indices.size());
        require(axis.positions > 0 && given > 0 && given % axis.positions == 0,
                "a kernel does not say what each position is made of");
        require(axis.weights.empty() || axis.weights.size() == axis.indices.size(),
                "a kernel has other weights than indices");
        for (const int64_t place : axis.indices)
            require(0 <= place && place < axis.length && place <= INT32_MAX,
                    "a kernel is made of what is not there");
        if (index > 0) {
            const Taps &last = axes[index - 1];
            require(source == last.before * last.positions * last.after,
                    "an axis of a kernel does not follow the one before");
        }
    }
    return std::make_shared<AxisByAxis>(axes);
}

} // namespace tightship::kernels
