#include "cpu/this_cpu.hpp"
#include "softmax_task.hpp"

#include "tightship/kernels/float_math.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/kernels/reduction/rows.hpp"

#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kColumns = 32; ///< that are worked on at once; of one row, lanes
constexpr int64_t kPart = 512;
constexpr int64_t kRowsGrain = 1 << 14; ///< elements that pay for a thread

template <class Real> TIGHTSHIP_INLINE Real larger(Real a, Real b) {
    return a > b || a != a ? a : b;
}

/// Computes y = exp(x - top); returns the sum. Separate passes keep both loops vectorized.
template <class Real>
TIGHTSHIP_INLINE double powers(const Real *x, Real *y, int64_t length, Real top) {
    map_row(x, y, length,
            [=](Real v) __attribute__((always_inline)) { return exponential(v - top); });
    double sums[kColumns] = {};
    const int64_t whole = length / kColumns * kColumns;
    for (int64_t index = 0; index < whole; index += kColumns)
        for (int64_t lane = 0; lane < kColumns; ++lane)
            sums[lane] += static_cast<double>(y[index + lane]);
    for (int64_t index = whole; index < length; ++index)
        sums[0] += static_cast<double>(y[index]);
    for (int64_t lane = 1; lane < kColumns; ++lane)
        sums[0] += sums[lane];
    return sums[0];
}

template <class Real> TIGHTSHIP_INLINE Real largest_of(const Real *x, int64_t length) {
    Real largest[kColumns];
    std::fill_n(largest, kColumns, -std::numeric_limits<Real>::infinity());
    const int64_t whole = length / kColumns * kColumns;
    for (int64_t index = 0; index < whole; index += kColumns)
        for (int64_t lane = 0; lane < kColumns; ++lane)
            largest[lane] = larger(largest[lane], x[index + lane]);
    for (int64_t index = whole; index < length; ++index)
        largest[0] = larger(largest[0], x[index]);
    for (int64_t lane = 1; lane < kColumns; ++lane)
        largest[0] = larger(largest[0], largest[lane]);
    return largest[0];
}

/// Computes one row; lanes run along it.
template <class Real>
TIGHTSHIP_INLINE void softmax_row(const Real *x, Real *y, int64_t length, bool is_logarithm) {
    const Real top = largest_of(x, length);
    if (!is_logarithm) {
        const Real factor = static_cast<Real>(1 / powers(x, y, length, top));
        map_row(y, y, length, [=](Real v) __attribute__((always_inline)) { return v * factor; });
        return;
    }
    Real part[kPart];
    double sum = 0;
    for (int64_t first = 0; first < length; first += kPart)
        sum += powers(x + first, part, std::min(kPart, length - first), top);
    const Real log = static_cast<Real>(std::log(sum));
    map_row(x, y, length, [=](Real v) __attribute__((always_inline)) { return v - top - log; });
}

/// Computes up to kColumns columns, `step` elements from one row to the next.
template <class Real>
TIGHTSHIP_INLINE void softmax_columns(const Real *x, Real *y, int64_t length, int64_t step,
                                      int64_t columns, bool is_logarithm) {
    Real largest[kColumns], sums[kColumns] = {}, powers[kColumns];
    std::fill_n(largest, kColumns, -std::numeric_limits<Real>::infinity());
    for (int64_t row = 0; row < length; ++row)
        for (int64_t column = 0; column < columns; ++column)
            largest[column] = larger(largest[column], x[row * step + column]);
    for (int64_t row = 0; row < length; ++row) {
        Real *to = is_logarithm ? powers : y + row * step;
        zip_row(x + row * step, largest, to, columns,
                [](Real a, Real b) __attribute__((always_inline)) { return exponential(a - b); });
        for (int64_t column = 0; column < columns; ++column)
            sums[column] += to[column];
    }
    for (int64_t column = 0; column < columns; ++column)
        sums[column] = is_logarithm ? std::log(sums[column]) : 1 / sums[column];
    for (int64_t row = 0; row < length; ++row) {
        const Real *from = x + row * step;
        Real *to = y + row * step;
        TIGHTSHIP_INDEPENDENT
        for (int64_t column = 0; column < columns; ++column)
            to[column] = is_logarithm ? from[column] - largest[column] - sums[column]
                                      : to[column] * sums[column];
    }
}

#define FAMILY(Real)                                                                               \
    TIGHTSHIP_CLONES void rows(const Real *x, Real *y, int64_t length, int64_t step,               \
                               int64_t columns, bool is_logarithm) {                               \
        if (step == 1)                                                                             \
            softmax_row(x, y, length, is_logarithm);                                               \
        else                                                                                       \
            softmax_columns(x, y, length, step, columns, is_logarithm);                            \
    }
FAMILY(float)
FAMILY(double)
#undef FAMILY

template <class Real> class Softmax : public Kernel {
  public:
    Softmax(int64_t before, int64_t along, int64_t after, bool is_logarithm)
        : before_(before), along_(along), after_(after), is_logarithm_(is_logarithm) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *source = reinterpret_cast<const Real *>(operands[0]);
        auto *target = reinterpret_cast<Real *>(operands[1]);
        const int64_t bands = (after_ + kColumns - 1) / kColumns;
        const int64_t work = std::max<int64_t>(along_ * std::min(after_, kColumns) * 8, 1);
        parallel_for(threads, before_ * bands, 16384 / work, [&](int64_t begin, int64_t end) {
            for (int64_t index = begin; index < end; ++index) {
                const int64_t column = index % bands * kColumns;
                const int64_t start = index / bands * along_ * after_ + column;
                rows(source + start, target + start, along_, after_,
                     std::min(kColumns, after_ - column), is_logarithm_);
            }
        });
    }

    std::vector<Reach> reach() const override {
        const int64_t count = counted({before_, along_, after_});
        return {dense(count, sizeof(Real)), dense(count, sizeof(Real))};
    }

  private:
    int64_t before_, along_, after_;
    bool is_logarithm_;
};

/// Softmax over rows of float32.
class SoftmaxRows : public Kernel {
  public:
    SoftmaxRows(int64_t rows, int64_t length)
        : rows_(rows), length_(length),
          loop_(for_this_cpu(avx512::softmax_rows, avx2::softmax_rows, portable::softmax_rows)) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *source = reinterpret_cast<const float *>(operands[0]);
        auto *target = reinterpret_cast<float *>(operands[1]);
        parallel_for(
            threads, rows_, std::max<int64_t>(kRowsGrain / length_, 1),
            [&](int64_t begin, int64_t end) { loop_(source, target, length_, begin, end); });
    }

    std::vector<Reach> reach() const override {
        const int64_t count = counted({rows_, length_});
        return {dense(count, sizeof(float)), dense(count, sizeof(float))};
    }

  private:
    int64_t rows_, length_;
    SoftmaxLoop loop_;
};

} // namespace

std::shared_ptr<const Kernel> softmax(ElementType type, int64_t before, int64_t along,
                                      int64_t after, bool is_logarithm) {
    counted({before, along, after, kItemMax});
    if (type == ElementType::kFloat32 && after == 1 && along > 0 && !is_logarithm)
        return std::make_shared<SoftmaxRows>(before, along);
    if (type == ElementType::kFloat32)
        return std::make_shared<Softmax<float>>(before, along, after, is_logarithm);
    if (type == ElementType::kFloat64)
        return std::make_shared<Softmax<double>>(before, along, after, is_logarithm);
    return nullptr;
}

} // namespace tightship::kernels
