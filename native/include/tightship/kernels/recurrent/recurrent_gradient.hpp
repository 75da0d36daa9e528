/// The way back through one direction of a recurrent layer, between products of matrices; and its
/// weights packed while a program runs.
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
    bool is_reversed; ///< goes from the last step to the first
    bool is_cut;      ///< the activation of a plain cell is Relu
};

/// Operands that are there or not, in their order: dense, float32, gates in ONNX's order.
enum class BackPart {
    kGates,            ///< (steps, batch, gates, hidden): what the inputs give them
    kShares,           ///< as large: what the state before each step gives them
    kWeights,          ///< (gates, hidden, hidden): of the state
    kBias,             ///< (2, gates, hidden): of inputs and of the state
    kStates,           ///< (steps, batch, hidden): of a plain cell after, of a GRU before each step
    kFirstCell,        ///< (batch, hidden): of an LSTM; zero without, as all below
    kGradient,         ///< (steps, batch, hidden): of the states after each step
    kLastGradient,     ///< (batch, hidden): of the last one
    kLastCellGradient, ///< of the last cell
    kInputGates,       ///< written, over the gates: the gradients of what inputs give
    kStateGates,       ///< of a GRU, written over the shares: of what states give
    kFirstGradient,    ///< (batch, hidden), written: of the first state
    kFirstCellGradient,
};
constexpr size_t kBackParts = 13;

/// `parts` in their order, then scratch. Of a plain cell there are no gates and no shares, for its
/// slope follows from its states.
std::shared_ptr<const Kernel> recurrent_gradient(const RecurrentGradientSpec &spec,
                                                 const std::vector<BackPart> &parts);

/// Weights of the state, (directions, gates, hidden, hidden), then the same packed as `recurrent`
/// takes them.
std::shared_ptr<const Kernel> recurrent_weights(Cell cell, int64_t directions, int64_t hidden);

} // namespace tightship::kernels
