/// Recurrent layers, step by step, from precomputed products of their inputs.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/recurrent/cell.hpp"

#include <array>
#include <memory>
#include <vector>

namespace tightship::kernels {

struct RecurrentShape {
    int64_t steps, batch, directions, hidden;
};

struct RecurrentRule {
    Cell cell;
    bool is_reversed; ///< whether the first direction runs from the last step to the first
    bool is_coupled;  ///< whether an LSTM's forget gate is one minus its input gate
    float limit;      ///< bound of the magnitude of activations' inputs
    std::vector<Activation> activations; ///< of one direction after another
};

/// Optional operands, in their order.
enum class RecurrentPart {
    kResetBias, ///< (directions, hidden): of a linear GRU, added before the reset
    kLengths,   ///< (batch), of int32: steps of each row
    kState,     ///< before the first step; zero without
    kCellState,
    kPeephole, ///< (directions, 3, hidden): input, output, forget
    kScales,   ///< of sums by weights, in the order of a row of the packed weights, by direction
    kSequence, ///< the state after every step
    kLastState,
    kLastCellState,
};
constexpr size_t kRecurrentParts = 9;

/// Elements from one step, direction or row of the batch to the next; hidden units are adjacent.
struct RecurrentLayout {
    std::array<int64_t, 2> gates;    ///< step, row
    std::array<int64_t, 3> sequence; ///< step, direction, row
    std::array<int64_t, 2> state;    ///< direction, row; of all states
};

/// Makes a recurrent layer. Operands: products of the inputs, (steps, batch, directions * gates *
/// hidden), biases added; packed weights of the state; `parts`; scratch. Gates are in ONNX's order.
///
/// Weights are packed by direction. Units are rounded up to multiples of 16 and cut into blocks of
/// `recurrent_block_units`; a block has, for each element of the state, its units of each gate. A
/// GRU that is not linear has update and reset in such blocks, and then those of its candidate.
/// `is_narrow`: weights are bfloat16 instead of float32.
std::shared_ptr<const Kernel> recurrent(const RecurrentShape &shape, const RecurrentRule &rule,
                                        const std::vector<RecurrentPart> &parts,
                                        const RecurrentLayout &layout, bool is_narrow = false);

} // namespace tightship::kernels
