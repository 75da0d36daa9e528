/// Scores of attention and their weights, compiled once for each instruction set.
#pragma once

#include "attention_rows.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr float kInfinity = __builtin_inff();

typedef uint8_t Bytes __attribute__((vector_size(kWidth)));
typedef Bytes UnalignedBytes __attribute__((aligned(1), may_alias));

/// Reduces all lanes to one by `join`, halves onto halves.
template <class Join> inline float joined(Vector values, const Join &join) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    values = join(values, __builtin_shufflevector(values, values, 8, 9, 10, 11, 12, 13, 14, 15, 0,
                                                  1, 2, 3, 4, 5, 6, 7));
#endif
#if TIGHTSHIP_VECTOR_BYTES >= 32
    typedef float Eight __attribute__((vector_size(32)));
    Eight half;
    __builtin_memcpy(&half, &values, sizeof half);
    half = join(half, __builtin_shufflevector(half, half, 4, 5, 6, 7, 0, 1, 2, 3));
#else
    const Vector half = values;
#endif
    return join(join(half[0], half[1]), join(half[2], half[3]));
}

inline float largest_of(Vector values) {
    return joined(values, [](auto left, auto right) { return left > right ? left : right; });
}

inline float sum_of(Vector values) {
    return joined(values, [](auto left, auto right) { return left + right; });
}

inline Ints lanes() {
    Ints result{};
    for (int lane = 0; lane < kWidth; ++lane)
        result[lane] = lane;
    return result;
}

/// Mask of up to a vector of scores.
class MaskRow {
  public:
    MaskRow(const AttentionTask &task, int64_t query, int64_t first_key, int64_t head = 0)
        : data_(task.mask == nullptr ? nullptr
                                     : task.mask + head * task.mask_group + query * task.mask_row +
                                           first_key * task.mask_column),
          step_(task.mask_column), fill_(task.fill), kind_(task.mask_kind) {}

    Vector apply(Vector scores, int64_t key, int64_t count) const {
        if (data_ == nullptr)
            return scores;
        if (kind_ == Mask::kKept)
            return set(key, count) ? scores : spread(fill_);
        if (kind_ == Mask::kHidden)
            return set(key, count) ? spread(fill_) : scores;
        return scores + added(key, count);
    }

  private:
    Vector added(int64_t key, int64_t count) const {
        if (step_ == 4 && count >= kWidth)
            return load(reinterpret_cast<const float *>(data_) + key);
        Vector result{};
        for (int64_t lane = 0; lane < kWidth && lane < count; ++lane)
            result[lane] = *reinterpret_cast<const float *>(data_ + (key + lane) * step_);
        return result;
    }
    Ints set(int64_t key, int64_t count) const {
        if (step_ == 1 && count >= kWidth)
            return __builtin_convertvector(*reinterpret_cast<const UnalignedBytes *>(data_ + key),
                                           Ints) != 0;
        Ints result{};
        for (int64_t lane = 0; lane < kWidth && lane < count; ++lane)
            result[lane] = data_[(key + lane) * step_] != 0 ? -1 : 0;
        return result;
    }

    const char *data_;
    int64_t step_;
    float fill_;
    Mask kind_;
};

/// Range of keys, relative to the first of a block.
struct Seen {
    int64_t from, to;
};

/// Returns the keys that a query sees, of `count` from `first` on.
inline Seen seen_by(const AttentionTask &task, int64_t query, int64_t first, int64_t count) {
    const int64_t from = task.lower + query - first, to = task.upper + query + 1 - first;
    return {from < 0 ? 0 : from, to < 0 ? 0 : to < count ? to : count};
}

/// Maximum of the scores that a query has seen, and the sum of its weights relative to it.
struct Weights {
    float maximum = -kInfinity, sum = 0.0F;

    float origin() const { return maximum == -kInfinity ? 0.0F : maximum; }

    /// Turns scores into weights relative to the largest so far. Returns the factor by which
    /// weights of blocks before shrink.
    float add(const AttentionTask &task, float *scores, const MaskRow &mask, int64_t count,
              const Seen &seen) {
        const float before = maximum;
        Vector largest = spread(before);
        for (int64_t key = 0; key < count; key += kWidth) {
            Vector each = load(scores + key) * task.scale;
            if (task.cap > 0)
                each = hyperbolic_tangent(each / task.cap) * task.cap;
            each = mask.apply(each, key, count - key);
            if (key + kWidth > seen.to)
                each = lanes() < lane_of(seen.to - key) ? each : spread(-kInfinity);
            if (key < seen.from)
                each = lanes() < lane_of(seen.from - key) ? spread(-kInfinity) : each;
            store(scores + key, each);
            largest = each > largest ? each : largest;
        }
        maximum = largest_of(largest);
        Vector sums{};
        for (int64_t key = 0; key < count; key += kWidth) {
            const Vector weight = exponential(load(scores + key) - origin());
            store(scores + key, weight);
            sums += weight;
        }
        const float kept = __builtin_expf(before - origin());
        sum = sum_of(sums) + kept * sum;
        return kept;
    }

    /// Returns the factor that makes weights of sum one, the sink's weight counted.
    float factor(const float *sink) const {
        return 1.0F / (sum + (sink == nullptr ? 0.0F : __builtin_expf(*sink - origin())));
    }

  private:
    static int32_t lane_of(int64_t key) {
        return static_cast<int32_t>(key < 0 ? 0 : key < kWidth ? key : kWidth);
    }
};

/// Writes the result of a query that sees no key.
inline void write_unseen(const AttentionTask &task, float *target) {
    const bool is_zero = task.zero_if_undefined || task.zero_if_unseen || task.sink != nullptr;
    for (int64_t column = 0; column < task.width; ++column)
        target[column] = is_zero ? 0.0F : __builtin_nanf("");
}

/// Returns whether a query sees no key, or its result is zero because it is undefined.
inline bool is_void(const AttentionTask &task, const Weights &weights) {
    return weights.sum == 0 || (task.zero_if_undefined && !(weights.sum > 0));
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
