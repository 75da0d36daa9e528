/// Loops of recurrent layers, compiled once for each instruction set.
#pragma once

#include "kernels/vector_math.hpp"
#include "recurrent_task.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

Vector activated(const Activation &activation, Vector x) {
    const float alpha = activation.alpha, beta = activation.beta;
    switch (activation.function) {
    case Function::kAffine:
        return x * alpha + beta;
    case Function::kElu:
        return x < 0.0F ? exponential_less_one(x) * alpha : x;
    case Function::kHardSigmoid: {
        const Vector line = x * alpha + beta;
        const Vector above = line < 0.0F ? Vector{} : line;
        return above > 1.0F ? spread(1.0F) : above;
    }
    case Function::kLeakyRelu:
        return x < 0.0F ? x * alpha : x;
    case Function::kRelu:
        return x < 0.0F ? Vector{} : x;
    case Function::kScaledTanh:
        return hyperbolic_tangent(x * beta) * alpha;
    case Function::kSigmoid:
        return sigmoid(x);
    case Function::kSoftsign:
        return x / (magnitude(x) + 1.0F);
    case Function::kTanh:
        return hyperbolic_tangent(x);
    case Function::kThresholdedRelu:
        return x > alpha ? x : x * 0.0F;
    }
    __builtin_unreachable();
}

/// Vector of hidden units of one row of the batch.
struct Place {
    int64_t row, unit;
    int64_t count;     ///< number of units in use
    const float *sums; ///< products of the state, by gate
    int64_t gate_step; ///< from one gate's to the next
};

/// Weights of some gates, in blocks, and the rows that they are multiplied by.
struct Product {
    int64_t first_gate, gates;
    const float *rows;
};

/// Loads numbers of bfloat16. GCC 12 widens a vector of 64 bytes in two halves by itself.
inline Vector load(const uint16_t *from) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
#else
    typedef uint16_t Halves __attribute__((vector_size(TIGHTSHIP_VECTOR_BYTES / 2)));
    Halves halves;
    __builtin_memcpy(&halves, from, sizeof halves);
    return reinterpret_cast<Vector>(__builtin_convertvector(halves, Ints) << 16);
#endif
}

/// Rows of the batch computed at once. A block of weights exceeds the first-level cache, so each
/// further tile of rows reads all of it from the second level again. More rows than `kTileRows` are
/// multiplied by half of a block's four vectors at a time, so that sums stay in registers.
constexpr int kRows = TIGHTSHIP_VECTOR_BYTES == 64 ? 8 : kTileRows;

/// Cycles until the sum of an addition can be added to. A tile of one row with fewer vectors waits
/// for them; whole blocks have enough.
constexpr int kLatency = 4;
constexpr int kAhead = 8; ///< elements of the state between fetch and use of weights

/// Multiplies vectors of a block of weights by many rows of the state, which are `row` elements
/// apart.
template <int Rows, int Vectors, class Weight = float>
void multiply_many(const float *left, int64_t row, int64_t depth, const Weight *panel,
                   int64_t columns, float *to) {
    Vector sums[Rows][Vectors] = {};
    for (int64_t index = 0; index < depth; ++index, panel += columns) {
        Vector operands[Vectors];
        for (int vector = 0; vector < Vectors; ++vector) {
            operands[vector] = load(panel + vector * kWidth);
            __builtin_prefetch(panel + kAhead * columns + vector * kWidth);
        }
#pragma GCC unroll 8
        for (int each = 0; each < Rows; ++each) {
            const Vector factor = spread(left[each * row + index]);
            for (int vector = 0; vector < Vectors; ++vector)
                sums[each][vector] += factor * operands[vector];
        }
    }
#pragma GCC unroll 8
    for (int each = 0; each < Rows; ++each)
        for (int vector = 0; vector < Vectors; ++vector)
            store(to + each * columns + vector * kWidth, sums[each][vector]);
}

template <int Vectors> auto many_of(int64_t rows) {
    return rows == 8 ? multiply_many<8, Vectors> : multiply_many<7, Vectors>;
}

template <int Vectors> auto narrow_of(int64_t rows) {
    using Multiply = void (*)(const float *, int64_t, int64_t, const uint16_t *, int64_t, float *);
    constexpr Multiply each[] = {
        multiply_many<1, Vectors, uint16_t>, multiply_many<2, Vectors, uint16_t>,
        multiply_many<3, Vectors, uint16_t>, multiply_many<4, Vectors, uint16_t>,
        multiply_many<5, Vectors, uint16_t>, multiply_many<6, Vectors, uint16_t>,
        multiply_many<7, Vectors, uint16_t>, multiply_many<8, Vectors, uint16_t>};
    return each[rows - 1];
}

/// Step of a layer. `kUsual`: gates have sigmoids, everything else hyperbolic tangents, and nothing
/// is clipped.
template <bool kUsual> class Step {
  public:
    explicit Step(const RecurrentTask &task) : task_(task) {}

    void run(int64_t phase, int64_t begin, int64_t end) {
        const RecurrentTask &t = task_;
        switch (t.cell) {
        case Cell::kPlain:
            return blocks<&Step::plain>({0, 1, t.state}, begin, end);
        case Cell::kLinearGru:
            return blocks<&Step::linear_gru>({0, 3, t.state}, begin, end);
        case Cell::kLstm:
            return blocks<&Step::lstm>({0, 4, t.state}, begin, end);
        case Cell::kGru:
            if (phase == 0)
                return blocks<&Step::reset>({0, 2, t.state}, begin, end);
            return blocks<&Step::candidate>({2, 1, t.reset_state}, begin, end);
        }
    }

  private:
    template <auto kEnd> void blocks(const Product &product, int64_t begin, int64_t end) {
        const int64_t units = recurrent_block_units(product.gates);
        const bool is_second = task_.cell == Cell::kGru && product.first_gate > 0;
        const int64_t before = is_second ? product.first_gate * task_.room : 0;
        for (int64_t block = begin; block < end; ++block) {
            const int64_t first = block * units, rest = task_.room - first;
            const int64_t wide = rest < units ? rest : units, columns = product.gates * wide;
            const int64_t column = before + product.gates * first;
            const int64_t tiles = (task_.batch + kRows - 1) / kRows;
            for (int64_t index = 0; index < tiles; ++index) {
                const int64_t row = task_.batch * index / tiles;
                const int64_t count = task_.batch * (index + 1) / tiles - row;
                fetch(product, row, count, first, wide);
                multiply(product.rows + row * task_.room, count, column, columns);
                for (int64_t each = 0; each < count; ++each)
                    end_row<kEnd>(row + each, first, wide, sums_ + each * columns);
            }
        }
    }

    /// Prefetches the contribution of the inputs while the product is computed.
    void fetch(const Product &product, int64_t row, int64_t rows, int64_t first, int64_t units) {
        const float *gates = task_.gates + row * task_.gates_row + first;
        for (int64_t each = 0; each < rows; ++each, gates += task_.gates_row)
            for (int64_t gate = 0; gate < product.gates; ++gate)
                for (int64_t unit = 0; unit < units; unit += kUnitAlignment)
                    __builtin_prefetch(gates + (product.first_gate + gate) * task_.hidden + unit);
    }

    /// Multiplies rows by a block of weights, which begins with this column of all.
    void multiply(const float *left, int64_t rows, int64_t column, int64_t columns) {
        const int64_t begin = column * task_.hidden;
        if (task_.is_narrow)
            multiply_narrow(left, rows, reinterpret_cast<const uint16_t *>(task_.weights) + begin,
                            columns);
        else
            multiply(left, rows, reinterpret_cast<const float *>(task_.weights) + begin, columns);
        if (task_.scales == nullptr)
            return;
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t index = 0; index < columns; index += kWidth) {
                float *sums = sums_ + row * columns + index;
                store(sums, load(sums) * load(task_.scales + column + index));
            }
    }

    void multiply_narrow(const float *left, int64_t rows, const uint16_t *panel, int64_t columns) {
        const int64_t vectors = columns / kWidth, most = rows > kTileRows ? 2 : kTileVectors;
        for (int64_t first = 0; first < vectors; first += most) {
            const int64_t some = vectors - first < most ? vectors - first : most;
            const auto product = some == 1   ? narrow_of<1>(rows)
                                 : some == 2 ? narrow_of<2>(rows)
                                 : some == 3 ? narrow_of<3>(rows)
                                             : narrow_of<4>(rows);
            product(left, task_.room, task_.hidden, panel + first * kWidth, columns,
                    sums_ + first * kWidth);
        }
    }

    void multiply(const float *left, int64_t rows, const float *panel, int64_t columns) {
        const int64_t vectors = columns / kWidth;
        if constexpr (kTileVectors < kLatency)
            if (rows == 1 && (vectors == 6 || vectors == 8)) // blocks of three gates, and others
                return (vectors == 6 ? multiply_many<1, 6>
                                     : multiply_many<1, 8>)(left, task_.room, task_.hidden, panel,
                                                            columns, sums_);
        if constexpr (kRows > kTileRows)
            if (rows > kTileRows)
                return sum_many(left, rows, panel, vectors);
        for (int64_t first = 0; first < vectors; first += kTileVectors) {
            const int64_t some = vectors - first < kTileVectors ? vectors - first : kTileVectors;
            tile_of(rows, some)({left, task_.room, 1}, {panel + first * kWidth, columns},
                                task_.hidden, {sums_ + first * kWidth, columns, nullptr, nullptr});
        }
    }

    void sum_many(const float *left, int64_t rows, const float *panel, int64_t vectors) {
        const int64_t most = vectors == 3 ? 3 : 2;
        for (int64_t first = 0; first < vectors; first += most) {
            const auto product = vectors == 1   ? many_of<1>(rows)
                                 : vectors == 3 ? many_of<3>(rows)
                                                : many_of<2>(rows);
            product(left, task_.room, task_.hidden, panel + first * kWidth, vectors * kWidth,
                    sums_ + first * kWidth);
        }
    }

    template <auto kEnd>
    void end_row(int64_t row, int64_t first, int64_t units, const float *sums) {
        const bool goes_on = task_.lengths == nullptr || task_.time < task_.lengths[row];
        for (int64_t index = 0; index < units; index += kWidth) {
            const int64_t unit = first + index;
            const Place place{row, unit, task_.hidden - unit, sums + index, units};
            if (goes_on)
                (this->*kEnd)(place);
            else
                keep(place);
        }
    }

    void plain(const Place &place) { finish(place, activate(0, given(place, 0))); }

    void linear_gru(const Place &place) {
        const Vector update = activate(0, given(place, 0)), reset = activate(0, given(place, 1));
        Vector sum = product(place, 2);
        if (task_.reset_bias != nullptr)
            sum += load_some(task_.reset_bias + place.unit, place.count);
        finish_gru(place, update, activate(1, input(place, 2) + reset * sum));
    }

    void reset(const Place &place) {
        store(of(task_.update, place), activate(0, given(place, 0)));
        const Vector reset = activate(0, given(place, 1));
        store(of(task_.reset_state, place), reset * load(of(task_.state, place)));
    }

    void candidate(const Place &place) {
        const Vector sum = input(place, 2) + product(place, 0);
        finish_gru(place, load(of(task_.update, place)), activate(1, sum));
    }

    void finish_gru(const Place &place, Vector update, Vector candidate) {
        const Vector before = load(of(task_.state, place));
        finish(place, (before - candidate) * update + candidate);
    }

    void lstm(const Place &place) {
        float *cell = of(task_.cell_state, place);
        const Vector before = load(cell);
        const Vector enter = activate(0, given(place, 0) + peeped(place, 0, before));
        const Vector forget = task_.is_coupled
                                  ? 1.0F - enter
                                  : activate(0, given(place, 2) + peeped(place, 2, before));
        const Vector after = forget * before + enter * activate(1, given(place, 3));
        const Vector leave = activate(0, given(place, 1) + peeped(place, 1, after));
        store(cell, after);
        finish(place, leave * (kUsual ? hyperbolic_tangent(after)
                                      : activated(task_.activations[2], after)));
    }

    Vector input(const Place &place, int64_t gate) const {
        return load_some(task_.gates + place.row * task_.gates_row + gate * task_.hidden +
                             place.unit,
                         place.count);
    }
    static Vector product(const Place &place, int64_t gate) {
        return load(place.sums + gate * place.gate_step);
    }
    Vector given(const Place &place, int64_t gate) const {
        return input(place, gate) + product(place, gate);
    }

    Vector peeped(const Place &place, int64_t gate, Vector cell) const {
        if (task_.peephole == nullptr)
            return Vector{};
        return load_some(task_.peephole + gate * task_.hidden + place.unit, place.count) * cell;
    }

    /// Applies the activation number `index`; number 0 is that of the gates.
    Vector activate(int64_t index, Vector x) const {
        if constexpr (kUsual)
            return index == 0 && task_.cell != Cell::kPlain ? sigmoid(x) : hyperbolic_tangent(x);
        const Vector low = spread(-task_.limit), high = spread(task_.limit);
        x = x < low ? low : x;
        return activated(task_.activations[index], x > high ? high : x);
    }

    template <class Float> Float *of(Float *rows, const Place &place) const {
        return rows + place.row * task_.room + place.unit;
    }

    void finish(const Place &place, Vector state) {
        store(of(task_.next_state, place), state);
        emit(place, state);
    }

    /// Handles a row past its length: its state stays, and its output is zero.
    void keep(const Place &place) {
        store(of(task_.next_state, place), load(of(task_.state, place)));
        emit(place, Vector{});
    }

    void emit(const Place &place, Vector state) {
        if (task_.sequence != nullptr)
            store_some(task_.sequence + place.row * task_.sequence_row + place.unit, state,
                       place.count);
    }

    const RecurrentTask &task_;
    float sums_[kRows * kBlockColumns];
};

} // namespace

void advance(const RecurrentTask &task, int64_t phase, int64_t begin, int64_t end) {
    if (task.is_usual)
        Step<true>(task).run(phase, begin, end);
    else
        Step<false>(task).run(phase, begin, end);
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
