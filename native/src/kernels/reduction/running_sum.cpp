#include "tightship/kernels/reduction/ranks.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <type_traits>

namespace tightship::kernels {

namespace {

constexpr int64_t kColumns = 128; ///< that are added up at once
constexpr int64_t kGrain = 1 << 14;

struct Way {
    bool is_exclusive, is_reverse;
};

/// Sums columns side by side; the initial sums are such that adding any x gives x.
template <class X>
TIGHTSHIP_INLINE void add_up(const X *x, X *y, Line line, int64_t columns, Way way) {
    X sums[kColumns];
    std::fill_n(sums, columns, std::is_floating_point_v<X> ? -X(0) : X(0));
    for (int64_t index = 0; index < line.along; ++index) {
        const int64_t row = (way.is_reverse ? line.along - 1 - index : index) * line.after;
        for (int64_t column = 0; column < columns; ++column) {
            const X before = index == 0 ? X(0) : sums[column];
            sums[column] += x[row + column];
            y[row + column] = way.is_exclusive ? before : sums[column];
        }
    }
}

#define FAMILY(X)                                                                                  \
    TIGHTSHIP_CLONES void sum(const X *x, X *y, Line line, int64_t columns, Way way) {             \
        if (line.after == 1)                                                                       \
            add_up(x, y, {1, line.along, 1}, 1, way);                                              \
        else                                                                                       \
            add_up(x, y, line, columns, way);                                                      \
    }
FAMILY(float)
FAMILY(double)
FAMILY(uint32_t)
FAMILY(uint64_t)
#undef FAMILY

/// Running sum; integers wrap.
template <class X> class RunningSum : public Kernel {
  public:
    RunningSum(Line line, Way way) : line_(line), way_(way) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *source = reinterpret_cast<const X *>(operands[0]);
        auto *target = reinterpret_cast<X *>(operands[1]);
        const int64_t bands = (line_.after + kColumns - 1) / kColumns;
        const int64_t work = std::max<int64_t>(line_.along * std::min(line_.after, kColumns), 1);
        parallel_for(threads, line_.before * bands, kGrain / work, [&](int64_t begin, int64_t end) {
            for (int64_t index = begin; index < end; ++index) {
                const int64_t column = index % bands * kColumns;
                const int64_t start = index / bands * line_.along * line_.after + column;
                sum(source + start, target + start, line_, std::min(kColumns, line_.after - column),
                    way_);
            }
        });
    }

    std::vector<Reach> reach() const override {
        const int64_t count = counted({line_.before, line_.along, line_.after});
        return {dense(count, sizeof(X)), dense(count, sizeof(X))};
    }

  private:
    Line line_;
    Way way_;
};

} // namespace

std::shared_ptr<const Kernel> running_sum(ElementType type, Line line, bool is_exclusive,
                                          bool is_reverse) {
    const Way way{is_exclusive, is_reverse};
    counted({line.before, line.along, line.after, kItemMax});
    switch (type) {
    case ElementType::kFloat32:
        return std::make_shared<RunningSum<float>>(line, way);
    case ElementType::kFloat64:
        return std::make_shared<RunningSum<double>>(line, way);
    case ElementType::kInt32:
        return std::make_shared<RunningSum<uint32_t>>(line, way);
    case ElementType::kInt64:
        return std::make_shared<RunningSum<uint64_t>>(line, way);
    default:
        return nullptr;
    }
}

} // namespace tightship::kernels
