/// Backward steps of one direction of a recurrent layer, without its products of matrices; and
/// packing of its weights during a run.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/recurrent/cell.hpp"

#include <array>
#include <memory>
#include <vector>

namespace tightship::kernels {

struct RecurrentGradientSpec {
    Cell cell; ///< kPlain, kLinearGru or kLstm, with the activations that ONNX gives them
    int64_t steps, batch, hidden;
    bool is_reversed; ///< whether it runs from the last step to the first
    bool is_cut;      ///< whether the activation of a plain cell is Relu
};

/// Optional operands, in their order: dense, float32, gates in ONNX's order.
enum class BackPart {
    kGates,            ///< (steps, batch, gates, hidden): contribution of the inputs
    kShares,           ///< same shape: contribution of the state before each step
    kWeights,          ///< (gates, hidden, hidden): of the state
    kBias,             ///< (2, gates, hidden): of inputs and of the state
    kStates,           ///< (steps, batch, hidden): of a plain cell after, of a GRU before each step
    kFirstCell,        ///< (batch, hidden): of an LSTM; zero without, as all below
    kGradient,         ///< (steps, batch, hidden): of the states after each step
    kLastGradient,     ///< (batch, hidden): of the last one
    kLastCellGradient, ///< of the last cell
    kInputGates,       ///< written over `kGates`: gradients of these
    kStateGates,       ///< of a GRU, written over `kShares`: gradients of these
    kFirstGradient,    ///< (batch, hidden), written: of the first state
    kFirstCellGradient,
};
constexpr size_t kBackParts = 13;

/// Makes the backward steps. Operands: `parts` in their order, then scratch. A plain cell needs
/// neither gates nor shares, because its slope follows from its states.
std::shared_ptr<const Kernel> recurrent_gradient(const RecurrentGradientSpec &spec,
                                                 const std::vector<BackPart> &parts);

/// Makes a packing. Operands: weights of the state, (directions, gates, hidden, hidden), and the
/// packed weights of `recurrent`.
std::shared_ptr<const Kernel> recurrent_weights(Cell cell, int64_t directions, int64_t hidden);

} // namespace tightship::kernels
