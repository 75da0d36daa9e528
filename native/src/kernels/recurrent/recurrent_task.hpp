/// Arguments of the loops of a recurrent layer: plain data, because the loops are compiled once for
/// each instruction set and must share no inline function with other code.
#pragma once

#include "tightship/kernels/recurrent/cell.hpp"

namespace tightship::kernels {

/// One step of one direction. Rows of scratch are `room` elements apart, hidden units rounded up to
/// `kUnitAlignment`.
struct RecurrentTask {
    Cell cell;
    bool is_coupled;
    bool is_usual; ///< activations are ONNX's own, and nothing is clipped
    float limit;
    const Activation *activations;
    int64_t batch, hidden, room;
    const float *gates;
    int64_t gates_row;
    const char *weights;
    bool is_narrow;          ///< weights are bfloat16 instead of float32
    const float *scales;     ///< of sums, in the order of a row of weights; null for none
    const float *reset_bias; ///< null for none, as all below
    const float *peephole;
    const int32_t *lengths;
    int64_t time;
    const float *state;
    float *next_state;
    float *cell_state;           ///< of an LSTM
    float *update, *reset_state; ///< of a GRU that is not linear, between its two phases
    float *sequence;
    int64_t sequence_row;
};

/// Computes the blocks of weights from `begin` to `end` of a phase; a GRU that is not linear has
/// two phases, every other cell one.
using RecurrentLoop = void (*)(const RecurrentTask &task, int64_t phase, int64_t begin,
                               int64_t end);

namespace portable {
void advance(const RecurrentTask &task, int64_t phase, int64_t begin, int64_t end);
}
namespace avx2 {
void advance(const RecurrentTask &task, int64_t phase, int64_t begin, int64_t end);
}
namespace avx512 {
void advance(const RecurrentTask &task, int64_t phase, int64_t begin, int64_t end);
}

} // namespace tightship::kernels
