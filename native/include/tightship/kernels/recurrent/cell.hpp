/// What a recurrent layer computes at each step; plain data, which loops compiled for several
/// instruction sets share.
#pragma once

#include <cstdint>

namespace tightship::kernels {

/// `kLinearGru` resets the product of the state, `kGru` the state.
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

constexpr int64_t kUnitAlignment = 16; ///< hidden units are rounded up to a multiple of these
constexpr int64_t kBlockColumns = 64;  ///< at most, of a block of weights

/// Units that a block of the weights of so many gates serves.
static constexpr int64_t recurrent_block_units(int64_t gates) {
    return kBlockColumns / gates / kUnitAlignment * kUnitAlignment;
}

} // namespace tightship::kernels
