#include "tightship/kernels/reduction/ranks.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <type_traits>

namespace tightship::kernels {

namespace {

constexpr int64_t kColumns = 64; ///< that are searched at once; of one row, lanes
constexpr int64_t kGrain = 1 << 14;

template <class X> TIGHTSHIP_INLINE bool is_nan(X x) {
    return x != x;
}

template <class X> TIGHTSHIP_INLINE X better(X a, X b, bool is_largest) {
    return (is_largest ? a > b : a < b) || is_nan(a) ? a : b;
}

/// Returns the value of the wanted element of a dense row.
template <class X> TIGHTSHIP_INLINE X best_of(const X *x, int64_t length, bool is_largest) {
    X lanes[kColumns];
    std::fill_n(lanes, kColumns, x[0]);
    const int64_t whole = length / kColumns * kColumns;
    for (int64_t index = 0; index < whole; index += kColumns)
        for (int64_t lane = 0; lane < kColumns; ++lane)
            lanes[lane] = better(x[index + lane], lanes[lane], is_largest);
    for (int64_t index = whole; index < length; ++index)
        lanes[0] = better(x[index], lanes[0], is_largest);
    for (int64_t lane = 1; lane < kColumns; ++lane)
        lanes[0] = better(lanes[lane], lanes[0], is_largest);
    return lanes[0];
}

template <class X> TIGHTSHIP_INLINE bool is_same(X a, X b) {
    return a == b || (is_nan(a) && is_nan(b));
}

template <class X>
TIGHTSHIP_INLINE int64_t place_in_row(const X *x, int64_t length, bool is_largest,
                                      bool takes_last) {
    const X wanted = best_of(x, length, is_largest);
    if (takes_last) {
        int64_t place = length - 1;
        while (!is_same(x[place], wanted))
            --place;
        return place;
    }
    int64_t place = 0;
    for (; place + kColumns <= length; place += kColumns) {
        int found = 0;
        for (int64_t lane = 0; lane < kColumns; ++lane)
            found |= is_same(x[place + lane], wanted);
        if (found)
            break;
    }
    while (!is_same(x[place], wanted))
        ++place;
    return place;
}

/// Searches columns side by side, their elements `step` apart. Rows are counted in as many bits as
/// an element has, so rows are searched in batches of that range.
template <class X>
TIGHTSHIP_INLINE void places_in_columns(const X *x, int64_t *places, Line line, int64_t columns,
                                        bool is_largest, bool takes_last) {
    X tops[kColumns];
    std::copy_n(x, columns, tops);
    std::fill_n(places, columns, int64_t{0});
    const auto is_new = [=](X value, X top) __attribute__((always_inline)) {
        const int better = is_largest ? value > top : value < top;
        const int same = takes_last ? is_same(value, top) : 0;
        return ((better | is_nan(value)) & !is_nan(top)) | same;
    };
    using Row =
        std::conditional_t<sizeof(X) == 8, int64_t,
                           std::conditional_t<sizeof(X) == 4, int32_t,
                                              std::conditional_t<sizeof(X) == 2, int16_t, int8_t>>>;
    constexpr int64_t kRows = sizeof(X) >= 4 ? INT32_MAX : sizeof(X) == 2 ? INT16_MAX : INT8_MAX;
    for (int64_t first = 1; first < line.along; first += kRows) {
        const int64_t rows = std::min(kRows, line.along - first);
        Row found[kColumns];
        std::fill_n(found, columns, Row(-1));
        for (int64_t row = 0; row < rows; ++row) {
            const X *from = x + (first + row) * line.after;
            for (int64_t column = 0; column < columns; ++column) {
                const X value = from[column], top = tops[column];
                const bool takes = is_new(value, top);
                tops[column] = takes ? value : top;
                found[column] = takes ? static_cast<Row>(row) : found[column];
            }
        }
        for (int64_t column = 0; column < columns; ++column)
            if (found[column] >= 0)
                places[column] = first + found[column];
    }
}

template <class X>
TIGHTSHIP_INLINE void places_of(const X *x, int64_t *places, Line line, int64_t columns,
                                bool is_largest, bool takes_last) {
    if (line.after == 1)
        *places = place_in_row(x, line.along, is_largest, takes_last);
    else
        places_in_columns(x, places, line, columns, is_largest, takes_last);
}

#define FAMILY(X)                                                                                  \
    TIGHTSHIP_CLONES void find(const X *x, int64_t *places, Line line, int64_t columns,            \
                               bool is_largest, bool takes_last) {                                 \
        if (is_largest)                                                                            \
            places_of(x, places, line, columns, true, takes_last);                                 \
        else                                                                                       \
            places_of(x, places, line, columns, false, takes_last);                                \
    }
FAMILY(float)
FAMILY(double)
FAMILY(int8_t)
FAMILY(int16_t)
FAMILY(int32_t)
FAMILY(int64_t)
FAMILY(uint8_t)
#undef FAMILY

/// Calls `body(start, first, columns)` for every band of columns: the element it starts at, its
/// first column, counted through all lines, and its number of columns.
template <class Body> void each_band(Line line, int threads, const Body &body) {
    const int64_t bands = (line.after + kColumns - 1) / kColumns;
    const int64_t work = std::max<int64_t>(line.along * std::min(line.after, kColumns), 1);
    parallel_for(threads, line.before * bands, kGrain / work, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) {
            const int64_t column = index % bands * kColumns, before = index / bands;
            body(before * line.along * line.after + column, before * line.after + column,
                 std::min(kColumns, line.after - column));
        }
    });
}

template <class X> class Position : public Kernel {
  public:
    Position(Line line, bool is_largest, bool takes_last)
        : line_(line), is_largest_(is_largest), takes_last_(takes_last) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *source = reinterpret_cast<const X *>(operands[0]);
        auto *target = reinterpret_cast<int64_t *>(operands[1]);
        each_band(line_, threads, [&](int64_t start, int64_t first, int64_t columns) {
            find(source + start, target + first, line_, columns, is_largest_, takes_last_);
        });
    }

    std::vector<Reach> reach() const override {
        return {dense(counted({line_.before, line_.along, line_.after}), sizeof(X)),
                dense(counted({line_.before, line_.after}), sizeof(int64_t))};
    }

  private:
    Line line_;
    bool is_largest_, takes_last_;
};

template <class Real> class Hardmax : public Kernel {
  public:
    explicit Hardmax(Line line) : line_(line) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *source = reinterpret_cast<const Real *>(operands[0]);
        auto *target = reinterpret_cast<Real *>(operands[1]);
        if (line_.along == 0)
            return;
        each_band(line_, threads, [&](int64_t start, int64_t, int64_t columns) {
            int64_t places[kColumns];
            find(source + start, places, line_, columns, true, false);
            Real *to = target + start;
            if (line_.after == 1)
                std::fill_n(to, line_.along, Real(0));
            else
                for (int64_t row = 0; row < line_.along; ++row)
                    std::fill_n(to + row * line_.after, columns, Real(0));
            for (int64_t column = 0; column < columns; ++column)
                to[places[column] * line_.after + column] = 1;
        });
    }

    std::vector<Reach> reach() const override {
        const int64_t count = counted({line_.before, line_.along, line_.after});
        return {dense(count, sizeof(Real)), dense(count, sizeof(Real))};
    }

  private:
    Line line_;
};

} // namespace

std::shared_ptr<const Kernel> position(ElementType type, Line line, bool is_largest,
                                       bool takes_last) {
    counted({line.before, line.along, line.after, kItemMax});
    require(line.along > 0, "a kernel looks along an empty axis");
    switch (type) {
    case ElementType::kFloat32:
        return std::make_shared<Position<float>>(line, is_largest, takes_last);
    case ElementType::kFloat64:
        return std::make_shared<Position<double>>(line, is_largest, takes_last);
    case ElementType::kInt8:
        return std::make_shared<Position<int8_t>>(line, is_largest, takes_last);
    case ElementType::kInt16:
        return std::make_shared<Position<int16_t>>(line, is_largest, takes_last);
    case ElementType::kInt32:
        return std::make_shared<Position<int32_t>>(line, is_largest, takes_last);
    case ElementType::kInt64:
        return std::make_shared<Position<int64_t>>(line, is_largest, takes_last);
    case ElementType::kUint8:
        return std::make_shared<Position<uint8_t>>(line, is_largest, takes_last);
    default:
        return nullptr;
    }
}

std::shared_ptr<const Kernel> hardmax(ElementType type, Line line) {
    counted({line.before, line.along, line.after, kItemMax});
    if (type == ElementType::kFloat32)
        return std::make_shared<Hardmax<float>>(line);
    if (type == ElementType::kFloat64)
        return std::make_shared<Hardmax<double>>(line);
    return nullptr;
}

} // namespace tightship::kernels
