/// Attention without its matrix of scores: a block of keys at a time.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/attention/mask.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>

namespace tightship::kernels {

/// `softmax(scale * queries x keys, masked) x values` for every combination of `outer`.
struct AttentionShape {
    Dims outer; ///< batch, heads, ...: axes that every operand has, or repeats by a stride of 0
    int64_t queries, keys;
    int64_t depth; ///< of a query and a key
    int64_t width; ///< of a value
};

struct AttentionRule {
    float scale;
    Mask mask;
    float fill; ///< score of what a boolean mask hides
    /// Query i sees keys up to i + `ahead` only; negative: all.
    int64_t ahead;
    bool zero_if_undefined; ///< a query whose weights are NaN gives zeros
    bool zero_if_unseen;    ///< one all of whose scores are minus infinity does
};

/// Queries, keys, values, a mask where there is one, target, scratch. All but a boolean mask are
/// float32. Strides in bytes, each of the outer axes and then two more: query, depth; key, depth;
/// key, width; query, key; query, width. REQUIRES: the target's last is one element.
///
/// The softmax is taken over blocks of keys: each block's sum of `value * exp(score - maximum)`
/// is added to that of the blocks before it, scaled by `exp(old maximum - maximum)`.
/// Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018.
std::shared_ptr<const Kernel> attention(const AttentionShape &shape, const AttentionRule &rule,
                                        const std::vector<Dims> &strides);

} // namespace tightship::kernels
