/// What the loops of a recurrent layer's gradient are given; plain data, as `RecurrentTask`.
#pragma once

#include "tightship/kernels/recurrent/cell.hpp"

namespace tightship::kernels {

/// One step back. Rows of scratch are `room` elements apart; null operands are zero, or not wanted.
struct RecurrentGradientTask {
    Cell cell;
    bool is_cut;
    int64_t gate_count, batch, hidden, room;
    const float *panels;        ///< weights in blocks of `kBlockColumns` units, all gates in each
    const float *later;         ///< gradients of what the state gives the step that comes next
    const float *last_gradient; ///< of the state, where no step comes next
    const float *gradient;
    const float *gates, *shares, *bias;
    const float *states;               ///< of a plain cell after the step, of a GRU before it
    const float *cells, *cells_before; ///< in scratch, as all below
    float *cell_gradient, *carried;    ///< what passes by the products
    float *input_gates, *state_gates;  ///< dense
    float *first_gradient;             ///< where this is the way out of the first step
};

/// Gates and cells of rows of an LSTM, from the first step to the last.
struct RecurrentReplayTask {
    int64_t steps, batch, hidden, room;
    bool is_reversed;
    const float *gates, *shares, *bias;
    float *target; ///< gates after their activations
    float *cells;  ///< by step in the order of time, behind the one before all
};

/// Blocks of units from `begin` to `end`.
using RecurrentGradientLoop = void (*)(const RecurrentGradientTask &task, int64_t begin,
                                       int64_t end);
/// Rows from `begin` to `end`.
using RecurrentReplayLoop = void (*)(const RecurrentReplayTask &task, int64_t begin, int64_t end);

namespace portable {
void go_back(const RecurrentGradientTask &task, int64_t begin, int64_t end);
void replay(const RecurrentReplayTask &task, int64_t begin, int64_t end);
} // namespace portable
namespace avx2 {
void go_back(const RecurrentGradientTask &task, int64_t begin, int64_t end);
void replay(const RecurrentReplayTask &task, int64_t begin, int64_t end);
} // namespace avx2
namespace avx512 {
void go_back(const RecurrentGradientTask &task, int64_t begin, int64_t end);
void replay(const RecurrentReplayTask &task, int64_t begin, int64_t end);
} // namespace avx512

} // namespace tightship::kernels
