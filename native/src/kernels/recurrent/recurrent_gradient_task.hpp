/// Arguments of the loops of a recurrent layer's gradient: plain data, as `RecurrentTask`.
#pragma once

#include "tightship/kernels/recurrent/cell.hpp"

namespace tightship::kernels {

/// One step backward. Rows of scratch are `room` elements apart; null operands are zero, or not
/// wanted.
struct RecurrentGradientTask {
    Cell cell;
    bool is_cut;
    int64_t gate_count, batch, hidden, room;
    const float *panels;        ///< weights in blocks of `kBlockColumns` units, all gates in each
    const float *later;         ///< gradients of the next step's gates by the state
    const float *last_gradient; ///< of the state, at the last step
    const float *gradient;
    const float *gates, *shares, *bias;
    const float *states;               ///< of a plain cell after the step, of a GRU before it
    const float *cells, *cells_before; ///< in scratch, as all below
    float *cell_gradient, *carried;    ///< gradients that bypass the matrix products
    float *input_gates, *state_gates;  ///< dense
    float *first_gradient;             ///< set only for the gradient of the first state
};

/// Replay of gates and cells of rows of an LSTM, from the first step to the last.
struct RecurrentReplayTask {
    int64_t steps, batch, hidden, room;
    bool is_reversed;
    const float *gates, *shares, *bias;
    float *target; ///< gates after their activations
    float *cells;  ///< by step in the order of time, after the initial cells
};

/// Computes blocks of units from `begin` to `end`.
using RecurrentGradientLoop = void (*)(const RecurrentGradientTask &task, int64_t begin,
                                       int64_t end);
/// Computes rows from `begin` to `end`.
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
