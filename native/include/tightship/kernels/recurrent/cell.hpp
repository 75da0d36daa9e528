/// Rule of a recurrent layer's step: plain data, shared by loops compiled for several instruction
/// sets.
#pragma once

#include <cstdint>

namespace tightship::kernels {

/// Kind of a cell; `kLinearGru` resets the product of the state, `kGru` the state itself.
enum class Cell { kPlain, kGru, kLinearGru, kLstm };

enum class Function {
    kAffine,
    kElu,
    kHardSigmoid,
    kLeakyRelu,
    kRelu,
    kScaledTanh,
    kSigmoid,
    kSoftsign,
    kTanh,
    kThresholdedRelu,
};

struct Activation {
    Function function;
    float alpha, beta;
};

constexpr int64_t kUnitAlignment = 16; ///< hidden units are padded to a multiple of it
constexpr int64_t kBlockColumns = 64;  ///< most columns of a block of weights

/// Units in a block of the weights of `gates` gates.
static constexpr int64_t recurrent_block_units(int64_t gates) {
    return kBlockColumns / gates / kUnitAlignment * kUnitAlignment;
}

} // namespace tightship::kernels
