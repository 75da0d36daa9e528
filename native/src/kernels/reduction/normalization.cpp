#include "tightship/kernels/block_access.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/kernels/reduction/rows.hpp"

#include "tightship/parallel.hpp"

#include <cmath>

namespace tightship::kernels {

namespace {

using enum ElementType;

constexpr int kLanes = 32;

/// Sums (x - mean)^power over a dense row, in lanes.
template <int Power, class X> TIGHTSHIP_INLINE double moment(const X *x, int64_t length, X mean) {
    double lanes[kLanes] = {};
    int64_t index = 0;
    const auto term = [=](X v) __attribute__((always_inline)) {
        const double difference = static_cast<double>(v - mean);
        return Power == 1 ? difference : difference * difference;
    };
    for (; index + kLanes <= length; index += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
            lanes[lane] += term(x[index + lane]);
    for (int lane = 0; index < length; ++index, ++lane)
        lanes[lane] += term(x[index]);
    for (int width = kLanes / 2; width > 0; width /= 2)
        for (int lane = 0; lane < width; ++lane)
            lanes[lane] += lanes[lane + width];
    return lanes[0];
}

/// Computes y = (x - mean) * deviation * scale + bias; null means 1 and 0.
template <class X>
TIGHTSHIP_INLINE void normalized(const X *x, X *y, int64_t length, X mean, X deviation,
                                 const X *scale, const X *bias) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index)
        y[index] = (x[index] - mean) * deviation;
    if (scale != nullptr) {
        TIGHTSHIP_INDEPENDENT
        for (int64_t index = 0; index < length; ++index)
            y[index] *= scale[index];
    }
    if (bias != nullptr) {
        TIGHTSHIP_INDEPENDENT
        for (int64_t index = 0; index < length; ++index)
            y[index] += bias[index];
    }
}

#define FAMILY(X)                                                                                  \
    TIGHTSHIP_CLONES double sum(const X *x, int64_t length) {                                      \
        return moment<1>(x, length, X(0));                                                         \
    }                                                                                              \
    TIGHTSHIP_CLONES double squares(const X *x, int64_t length, X mean) {                          \
        return moment<2>(x, length, mean);                                                         \
    }                                                                                              \
    TIGHTSHIP_CLONES void normalize(const X *x, X *y, int64_t length, X mean, X deviation,         \
                                    const X *scale, const X *bias) {                               \
        normalized(x, y, length, mean, deviation, scale, bias);                                    \
    }                                                                                              \
    TIGHTSHIP_CLONES void scale_by(X *y, int64_t length, X scale, X bias) {                        \
        for (int64_t index = 0; index < length; ++index)                                           \
            y[index] = y[index] * scale + bias;                                                    \
    }
FAMILY(float)
FAMILY(double)
#undef FAMILY

template <class X> class Normalization : public Kernel {
  public:
    Normalization(const NormalizationSpec &spec, ElementType work)
        : spec_(spec), item_(item_bytes(spec.type)), length_(spec.segments * spec.segment_length),
          reader_(spec.type, work, item_), writer_(work, spec.type, item_),
          single_(spec.type, work, 0) {}

    void run(std::span<char *const> operands, int threads) const override {
        const char *source = operands[0];
        size_t next = 1;
        const char *scale = spec_.has_scale ? operands[next++] : nullptr;
        const char *bias = spec_.has_bias ? operands[next++] : nullptr;
        char *target = operands[next++];
        auto *means = reinterpret_cast<X *>(spec_.has_mean ? operands[next++] : nullptr);
        auto *deviations = reinterpret_cast<X *>(spec_.has_deviation ? operands[next] : nullptr);
        const int64_t grain = std::max<int64_t>(16384 / std::max<int64_t>(length_, 1), 1);
        parallel_for(threads, spec_.rows, grain, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
                const char *x = source + row * length_ * item_;
                const auto [mean, deviation] = statistics(x);
                write(row, x, target + row * length_ * item_, {mean, deviation}, scale, bias);
                if (means)
                    means[row] = mean;
                if (deviations)
                    deviations[row] = deviation;
            }
        });
    }

    size_t written() const override {
        return size_t{1} + (spec_.has_mean ? 1 : 0) + (spec_.has_deviation ? 1 : 0);
    }

    std::vector<Reach> reach() const override {
        const Reach rows = dense(counted({spec_.rows, length_}), item_);
        const Reach values = dense(spec_.by_segment ? spec_.parameters : length_, item_);
        const Reach statistics = dense(spec_.rows, sizeof(X));
        std::vector<Reach> all{rows};
        const auto add = [&](bool is_there, Reach reach) {
            if (is_there)
                all.push_back(reach);
        };
        add(spec_.has_scale, values);
        add(spec_.has_bias, values);
        add(true, rows);
        add(spec_.has_mean, statistics);
        add(spec_.has_deviation, statistics);
        return all;
    }

  private:
    struct Statistics {
        X mean, deviation;
    };

    template <class Body>
    void each_block(const BlockReader &reader, const char *row, int64_t length,
                    const Body &body) const {
        Block block;
        for (int64_t first = 0; first < length; first += kBlockItems) {
            const int64_t count = std::min(kBlockItems, length - first);
            body(reinterpret_cast<const X *>(reader.read(row, first, count, block)), first, count);
        }
    }

    Statistics statistics(const char *row) const {
        const auto count = static_cast<double>(length_);
        double total = 0, spread = 0;
        if (spec_.is_centered)
            each_block(reader_, row, length_,
                       [&](const X *x, int64_t, int64_t part) { total += sum(x, part); });
        const X mean = static_cast<X>(total / count);
        each_block(reader_, row, length_,
                   [&](const X *x, int64_t, int64_t part) { spread += squares(x, part, mean); });
        return {mean, static_cast<X>(1 / std::sqrt(spread / count + spec_.epsilon))};
    }

    X parameter(const char *values, int64_t index, X absent) const {
        if (values == nullptr)
            return absent;
        Block block;
        return *reinterpret_cast<const X *>(single_.read(values + index * item_, 0, 1, block));
    }

    void write(int64_t row, const char *source, char *target, Statistics of, const char *scale,
               const char *bias) const {
        const bool along = !spec_.by_segment;
        for (int64_t segment = 0; segment < spec_.segments; ++segment) {
            const int64_t start = segment * spec_.segment_length;
            const int64_t place = (row * spec_.segments + segment) % spec_.parameters;
            const X factor = along ? X(1) : parameter(scale, place, 1);
            const X shift = along ? X(0) : parameter(bias, place, 0);
            each_block(reader_, source + start * item_, spec_.segment_length,
                       [&](const X *x, int64_t first, int64_t count) {
                           Block scales, biases, result;
                           const auto *scale_row =
                               values(along ? scale : nullptr, start + first, count, scales);
                           const auto *bias_row =
                               values(along ? bias : nullptr, start + first, count, biases);
                           char *room = writer_.room(target, start + first, result);
                           auto *y = reinterpret_cast<X *>(room);
                           normalize(x, y, count, of.mean, of.deviation, scale_row, bias_row);
                           if (!along)
                               scale_by(y, count, factor, shift);
                           writer_.write(room, target, start + first, count);
                       });
        }
    }

    const X *values(const char *row, int64_t first, int64_t count, Block &block) const {
        return row == nullptr ? nullptr
                              : reinterpret_cast<const X *>(reader_.read(row, first, count, block));
    }

    NormalizationSpec spec_;
    int64_t item_, length_;
    BlockReader reader_;
    BlockWriter writer_;
    BlockReader single_;
};

} // namespace

std::shared_ptr<const Kernel> normalization(const NormalizationSpec &spec) {
    if (!is_float(spec.type))
        return nullptr;
    counted({spec.rows, spec.segments, spec.segment_length, kItemMax});
    counted({spec.parameters, kItemMax}, 1);
    if (work_type(spec.type) == kFloat32)
        return std::make_shared<Normalization<float>>(spec, kFloat32);
    return std::make_shared<Normalization<double>>(spec, kFloat64);
}

} // namespace tightship::kernels
