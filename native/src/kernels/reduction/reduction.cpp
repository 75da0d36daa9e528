#include "tightship/kernels/reduction/reduction.hpp"

#include "tightship/kernels/block_access.hpp"
#include "tightship/kernels/float_math.hpp"

#include <bit>
#include <type_traits>

namespace tightship::kernels {

namespace {

using enum ElementType;

enum Term { kSum, kSquares, kMagnitudes, kProduct, kLargest, kSmallest, kExponentials };
enum Finish { kAsIs, kMean, kRoot, kLogarithm };

struct Operator {
    std::string_view name;
    Term term;
    Finish finish;
};

constexpr Operator kOperators[] = {
    {"ReduceSum", kSum, kAsIs},           {"ReduceMean", kSum, kMean},
    {"ReduceSumSquare", kSquares, kAsIs}, {"ReduceL2", kSquares, kRoot},
    {"ReduceL1", kMagnitudes, kAsIs},     {"ReduceLogSum", kSum, kLogarithm},
    {"ReduceProd", kProduct, kAsIs},      {"ReduceMax", kLargest, kAsIs},
    {"ReduceMin", kSmallest, kAsIs},      {"ReduceLogSumExp", kExponentials, kLogarithm}};

template <class X> using Accumulator = std::conditional_t<std::is_floating_point_v<X>, double, X>;

template <class A> TIGHTSHIP_INLINE A initial(Term term) {
    if (term == kProduct)
        return 1;
    if (term != kLargest && term != kSmallest)
        return 0;
    if constexpr (std::is_floating_point_v<A>)
        return term == kLargest ? -std::numeric_limits<A>::infinity()
                                : std::numeric_limits<A>::infinity();
    else
        return term == kLargest ? std::numeric_limits<A>::min() : std::numeric_limits<A>::max();
}

template <class A> TIGHTSHIP_INLINE A magnitude(A x) {
    if constexpr (std::is_floating_point_v<A>)
        return std::fabs(x);
    else
        return x > 0 ? x : static_cast<A>(uint64_t{} - static_cast<uint64_t>(x));
}

/// Adds; integers wrap.
template <class A> TIGHTSHIP_INLINE A sum_of(A a, A b) {
    if constexpr (std::is_floating_point_v<A>)
        return a + b;
    else
        return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class A> TIGHTSHIP_INLINE A product_of(A a, A b) {
    if constexpr (std::is_floating_point_v<A>)
        return a * b;
    else
        return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// Combines two reduced parts; the result is NaN if either is.
template <class A> TIGHTSHIP_INLINE A joined(Term term, A a, A b) {
    switch (term) {
    case kProduct:
        return product_of(a, b);
    case kLargest:
        return a > b || a != a ? a : b;
    case kSmallest:
        return a < b || a != a ? a : b;
    default:
        return sum_of(a, b);
    }
}

template <class X, class A> TIGHTSHIP_INLINE A term_of(Term term, X x, A shift) {
    const A wide = static_cast<A>(x);
    switch (term) {
    case kSquares:
        return product_of(wide, wide);
    case kMagnitudes:
        return magnitude(wide);
    case kExponentials:
        if constexpr (std::is_floating_point_v<X>)
            return static_cast<A>(exponential(x - static_cast<X>(shift)));
        else
            return 0;
    default:
        return wide;
    }
}

constexpr int64_t kShortRow = 32;  ///< elements up to which many rows are reduced at once
constexpr int64_t kRowsWorth = 32; ///< of columns, so that a thread's share stays wide

/// Reduces a dense row in lanes that are combined at the end; a short one uses fewer.
template <class X, class A>
TIGHTSHIP_INLINE A row_of(Term term, const X *x, int64_t length, A shift) {
    constexpr int kLanes = 256 / sizeof(A);
    const int used = length < kLanes ? static_cast<int>(std::bit_ceil(uint64_t(length))) : kLanes;
    A lanes[kLanes];
    for (int lane = 0; lane < used; ++lane)
        lanes[lane] = initial<A>(term);
    int64_t index = 0;
    for (; index + kLanes <= length; index += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
            lanes[lane] = joined(term, lanes[lane], term_of(term, x[index + lane], shift));
    for (int lane = 0; index < length; ++index, ++lane)
        lanes[lane] = joined(term, lanes[lane], term_of(term, x[index], shift));
    for (int width = used / 2; width > 0; width /= 2)
        for (int lane = 0; lane < width; ++lane)
            lanes[lane] = joined(term, lanes[lane], lanes[lane + width]);
    return lanes[0];
}

template <class X, class A>
TIGHTSHIP_INLINE void columns_of(Term term, const X *x, A *sums, int64_t length, const A *shifts) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index)
        sums[index] = joined(term, sums[index], term_of(term, x[index], shifts[index]));
}

#define EACH_TERM(call)                                                                            \
    switch (term) {                                                                                \
    case kSum:                                                                                     \
        return call(kSum);                                                                         \
    case kSquares:                                                                                 \
        return call(kSquares);                                                                     \
    case kMagnitudes:                                                                              \
        return call(kMagnitudes);                                                                  \
    case kProduct:                                                                                 \
        return call(kProduct);                                                                     \
    case kLargest:                                                                                 \
        return call(kLargest);                                                                     \
    case kSmallest:                                                                                \
        return call(kSmallest);                                                                    \
    default:                                                                                       \
        return call(kExponentials);                                                                \
    }
#define ROW(each) row_of(each, x, length, shift)
#define COLUMNS(each) columns_of(each, x, sums, length, shifts)
#define FAMILY(X, A)                                                                               \
    TIGHTSHIP_CLONES A reduce_row(Term term, const X *x, int64_t length, A shift){                 \
        EACH_TERM(ROW)} TIGHTSHIP_CLONES void reduce_columns(Term term, const X *x, A *sums,       \
                                                             int64_t length, const A *shifts) {    \
        EACH_TERM(COLUMNS)                                                                         \
    }
FAMILY(float, double)
FAMILY(double, double)
FAMILY(int64_t, int64_t)
FAMILY(uint64_t, uint64_t)
#undef EACH_TERM
#define EACH_TERM(call) return term == kLargest ? call(kLargest) : call(kSmallest);
FAMILY(float, float)
#undef FAMILY
#undef COLUMNS
#undef ROW
#undef EACH_TERM

template <class X, class A = Accumulator<X>> class Reduction : public Kernel {
  public:
    Reduction(const ReductionSpec &spec, Operator an_operator, ElementType work, ElementType wide)
        : kept_(spec.kept_shape, {spec.kept_source, spec.kept_target}),
          reduced_(spec.reduced_shape, {spec.reduced_source}), operator_(an_operator),
          item_(item_bytes(spec.type)) {
        for (const int64_t length : spec.reduced_shape)
            count_ *= length;
        const int64_t kept_step = kept_.row_steps()[0], step = reduced_.row_steps()[0];
        const bool has_order = std::is_floating_point_v<A> && operator_.term != kLargest &&
                               operator_.term != kSmallest; // sums whose bits depend on it
        const bool is_short = reduced_.is_row() && reduced_.row_length() <= kShortRow && !has_order;
        by_columns_ = (step != item_bytes(spec.type) || is_short) && kept_.row_length() > 1;
        reader_ = BlockReader(spec.type, work, by_columns_ ? kept_step : step);
        writer_ = BlockWriter(wide, spec.type, kept_.row_steps()[1]);
    }

    void run(std::span<char *const> operands, int threads) const override {
        kept_.for_each_row(
            threads,
            [&](const auto &offsets, int64_t length) {
                const char *source = operands[0] + offsets[0];
                char *target = operands[1] + offsets[1];
                for (int64_t first = 0; first < length; first += kBlockItems) {
                    const int64_t count = std::min(kBlockItems, length - first);
                    Block shifts, sums;
                    reduce(source + first * kept_.row_steps()[0], count,
                           reinterpret_cast<A *>(shifts.bytes), reinterpret_cast<A *>(sums.bytes));
                    char *room = writer_.room(target, first, sums);
                    if (room != sums.bytes)
                        std::copy_n(sums.bytes, count * static_cast<int64_t>(sizeof(A)), room);
                    writer_.write(room, target, first, count);
                }
            },
            std::clamp<int64_t>(count_, 1, by_columns_ ? kRowsWorth : INT64_MAX));
    }

    std::vector<Reach> reach() const override {
        return {kernels::joined(kept_.reach(0, item_), reduced_.reach(0, item_), item_),
                kept_.reach(1, item_)};
    }

  private:
    void reduce(const char *source, int64_t count, A *shifts, A *sums) const {
        std::fill_n(shifts, count, A(0));
        if (operator_.term == kExponentials) {
            gather(kLargest, source, count, shifts, sums);
            for (int64_t index = 0; index < count; ++index)
                shifts[index] =
                    std::abs(static_cast<double>(sums[index])) <= std::numeric_limits<double>::max()
                        ? sums[index]
                        : A(0);
        }
        gather(operator_.term, source, count, shifts, sums);
        for (int64_t index = 0; index < count; ++index)
            sums[index] = sum_of(finished(sums[index]), shifts[index]);
    }

    void gather(Term term, const char *source, int64_t count, const A *shifts, A *sums) const {
        if (by_columns_) {
            std::fill_n(sums, count, initial<A>(term));
            each_row(source, [&](const char *row, int64_t length) {
                Block block;
                for (int64_t index = 0; index < length; ++index, row += reduced_.row_steps()[0]) {
                    const char *x = reader_.read(row, 0, count, block);
                    reduce_columns(term, reinterpret_cast<const X *>(x), sums, count, shifts);
                }
            });
            return;
        }
        for (int64_t index = 0; index < count; ++index, source += kept_.row_steps()[0])
            sums[index] = one(term, source, shifts[index]);
    }

    A one(Term term, const char *source, A shift) const {
        A sum = initial<A>(term);
        each_row(source, [&](const char *row, int64_t length) {
            Block block;
            const int64_t piece = reader_.is_direct() ? length : kBlockItems;
            for (int64_t first = 0; first < length; first += piece) {
                const int64_t count = std::min(piece, length - first);
                const char *x = reader_.read(row, first, count, block);
                sum = joined(term, sum,
                             reduce_row(term, reinterpret_cast<const X *>(x), count, shift));
            }
        });
        return sum;
    }

    template <class Body> void each_row(const char *source, const Body &body) const {
        if (reduced_.is_row())
            return body(source, reduced_.row_length());
        reduced_.for_each_row(
            1, [&](const auto &offsets, int64_t length) { body(source + offsets[0], length); });
    }

    A finished(A sum) const {
        const double wide = static_cast<double>(sum);
        switch (operator_.finish) {
        case kMean:
            return static_cast<A>(wide / static_cast<double>(count_));
        case kRoot:
            return static_cast<A>(std::sqrt(wide));
        case kLogarithm:
            return std::is_floating_point_v<A> || sum > 0 ? static_cast<A>(std::log(wide)) : A(0);
        default:
            return sum;
        }
    }

    LoopNest<2> kept_;
    LoopNest<1> reduced_;
    Operator operator_;
    int64_t item_;
    int64_t count_ = 1;
    bool by_columns_;
    BlockReader reader_;
    BlockWriter writer_;
};

} // namespace

std::shared_ptr<const Kernel> reduction(const ReductionSpec &spec) {
    for (const Operator &each : kOperators) {
        if (each.name != spec.name)
            continue;
        const ElementType work = work_type(spec.type);
        if (work == kFloat32 && (each.term == kLargest || each.term == kSmallest))
            return std::make_shared<Reduction<float, float>>(spec, each, kFloat32, kFloat32);
        if (work == kFloat32)
            return std::make_shared<Reduction<float>>(spec, each, kFloat32, kFloat64);
        if (work == kFloat64)
            return std::make_shared<Reduction<double>>(spec, each, kFloat64, kFloat64);
        if (each.term == kExponentials)
            return nullptr;
        if (is_signed(work))
            return std::make_shared<Reduction<int64_t>>(spec, each, kInt64, kInt64);
        return std::make_shared<Reduction<uint64_t>>(spec, each, kUint64, kUint64);
    }
    return nullptr;
}

} // namespace tightship::kernels
