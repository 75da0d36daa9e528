/// Loops of gradients of recurrent layers, compiled once for each instruction set.
#pragma once

#include "kernels/vector_math.hpp"
#include "recurrent_gradient_task.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Vector of hidden units of a row.
struct Spot {
    int64_t row, unit, count; ///< number of units in use
};

class StepBack {
  public:
    explicit StepBack(const RecurrentGradientTask &task) : task_(task) {}

    void run(int64_t begin, int64_t end) {
        const int64_t depth = task_.gate_count * task_.hidden;
        for (int64_t block = begin; block < end; ++block) {
            const int64_t first = block * kBlockColumns, rest = task_.room - first;
            const int64_t units = rest < kBlockColumns ? rest : kBlockColumns;
            for (int64_t row = 0; row < task_.batch; row += kTileRows) {
                const int64_t left = task_.batch - row, rows = left < kTileRows ? left : kTileRows;
                if (task_.later != nullptr)
                    multiply(row, rows, task_.panels + block * depth * kBlockColumns, units);
                for (int64_t each = 0; each < rows; ++each)
                    for (int64_t index = 0; index < units; index += kWidth)
                        end_spot({row + each, first + index, task_.hidden - first - index},
                                 sums_ + each * kBlockColumns + index);
            }
        }
    }

  private:
    void multiply(int64_t row, int64_t rows, const float *panel, int64_t units) {
        const int64_t depth = task_.gate_count * task_.hidden, vectors = units / kWidth;
        for (int64_t first = 0; first < vectors; first += kTileVectors) {
            const int64_t some = vectors - first < kTileVectors ? vectors - first : kTileVectors;
            tile_of(rows, some)({task_.later + row * depth, depth, 1},
                                {panel + first * kWidth, kBlockColumns}, depth,
                                {sums_ + first * kWidth, kBlockColumns, nullptr, nullptr});
        }
    }

    void end_spot(const Spot &spot, const float *sum) {
        Vector gradient = task_.later == nullptr ? some(task_.last_gradient, spot) : load(sum);
        if (task_.later != nullptr && task_.carried != nullptr)
            gradient += load(in_scratch(task_.carried, spot));
        if (task_.first_gradient != nullptr)
            return store_some(task_.first_gradient + spot.row * task_.hidden + spot.unit, gradient,
                              spot.count);
        gradient += some(task_.gradient, spot);
        switch (task_.cell) {
        case Cell::kLstm:
            return lstm(spot, gradient);
        case Cell::kPlain:
            return plain(spot, gradient);
        default:
            return gru(spot, gradient);
        }
    }

    void plain(const Spot &spot, Vector gradient) {
        const Vector state = some(task_.states, spot);
        put(task_.input_gates, spot, 0,
            task_.is_cut ? (state > 0.0F ? gradient : Vector{})
                         : gradient * (1.0F - state * state));
    }

    void lstm(const Spot &spot, Vector gradient) {
        const Vector enter = gate(task_.gates, spot, 0), leave = gate(task_.gates, spot, 1);
        const Vector forget = gate(task_.gates, spot, 2), fresh = gate(task_.gates, spot, 3);
        const Vector shown = hyperbolic_tangent(load(in_scratch(task_.cells, spot)));
        const Vector before = load(in_scratch(task_.cells_before, spot));
        float *kept = in_scratch(task_.cell_gradient, spot);
        const Vector cell = load(kept) + gradient * leave * (1.0F - shown * shown);
        put(task_.input_gates, spot, 0, cell * fresh * enter * (1.0F - enter));
        put(task_.input_gates, spot, 1, gradient * shown * leave * (1.0F - leave));
        put(task_.input_gates, spot, 2, cell * before * forget * (1.0F - forget));
        put(task_.input_gates, spot, 3, cell * enter * (1.0F - fresh * fresh));
        store(kept, cell * forget);
    }

    void gru(const Spot &spot, Vector gradient) {
        const Vector keep = sigmoid(given(spot, 0) + share(spot, 0));
        const Vector reset = sigmoid(given(spot, 1) + share(spot, 1));
        const Vector of_state = share(spot, 2);
        const Vector fresh = hyperbolic_tangent(given(spot, 2) + reset * of_state);
        const Vector on_fresh = gradient * (1.0F - keep) * (1.0F - fresh * fresh);
        const Vector on_reset = on_fresh * of_state * reset * (1.0F - reset);
        const Vector on_keep = gradient * (some(task_.states, spot) - fresh) * keep * (1.0F - keep);
        put(task_.input_gates, spot, 0, on_keep);
        put(task_.input_gates, spot, 1, on_reset);
        put(task_.input_gates, spot, 2, on_fresh);
        put(task_.state_gates, spot, 0, on_keep);
        put(task_.state_gates, spot, 1, on_reset);
        put(task_.state_gates, spot, 2, on_fresh * reset);
        store(in_scratch(task_.carried, spot), gradient * keep);
    }

    /// Returns the contributions of the inputs and of the state to a gate, each with its bias.
    Vector given(const Spot &spot, int64_t index) const {
        return gate(task_.gates, spot, index) + bias(spot, index);
    }
    Vector share(const Spot &spot, int64_t index) const {
        return gate(task_.shares, spot, index) + bias(spot, task_.gate_count + index);
    }
    Vector bias(const Spot &spot, int64_t index) const {
        return task_.bias == nullptr
                   ? Vector{}
                   : load_some(task_.bias + index * task_.hidden + spot.unit, spot.count);
    }

    Vector some(const float *rows, const Spot &spot) const {
        return rows == nullptr ? Vector{}
                               : load_some(rows + spot.row * task_.hidden + spot.unit, spot.count);
    }
    Vector gate(const float *gates, const Spot &spot, int64_t index) const {
        return gates == nullptr ? Vector{} : load_some(gates + at(spot, index), spot.count);
    }
    void put(float *gates, const Spot &spot, int64_t index, Vector value) const {
        store_some(gates + at(spot, index), value, spot.count);
    }
    int64_t at(const Spot &spot, int64_t index) const {
        return (spot.row * task_.gate_count + index) * task_.hidden + spot.unit;
    }
    template <class Float> Float *in_scratch(Float *rows, const Spot &spot) const {
        return rows + spot.row * task_.room + spot.unit;
    }

    const RecurrentGradientTask &task_;
    float sums_[kTileRows * kBlockColumns];
};

} // namespace

void go_back(const RecurrentGradientTask &task, int64_t begin, int64_t end) {
    StepBack(task).run(begin, end);
}

void replay(const RecurrentReplayTask &t, int64_t begin, int64_t end) {
    const int64_t gates = 4 * t.hidden, all = t.batch * gates;
    for (int64_t step = 0; step < t.steps; ++step) {
        const int64_t time = t.is_reversed ? t.steps - 1 - step : step;
        const float *cells_before = t.cells + step * t.batch * t.room;
        float *cells = t.cells + (step + 1) * t.batch * t.room;
        for (int64_t row = begin; row < end; ++row)
            for (int64_t unit = 0; unit < t.room; unit += kWidth) {
                const int64_t count = t.hidden - unit;
                const auto gate = [&](int64_t index) {
                    const int64_t at = row * gates + index * t.hidden + unit;
                    Vector sum = load_some(t.gates + time * all + at, count) +
                                 load_some(t.shares + time * all + at, count);
                    if (t.bias != nullptr)
                        sum += load_some(t.bias + index * t.hidden + unit, count) +
                               load_some(t.bias + gates + index * t.hidden + unit, count);
                    const Vector value = index == 3 ? hyperbolic_tangent(sum) : sigmoid(sum);
                    store_some(t.target + time * all + at, value, count);
                    return value;
                };
                const Vector enter = gate(0);
                gate(1);
                const Vector kept = gate(2) * load(cells_before + row * t.room + unit);
                store(cells + row * t.room + unit, kept + enter * gate(3));
            }
    }
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
