/// Attention that takes a block of keys at a time, so that its matrix of scores is never stored.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/attention/mask.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>

namespace tightship::kernels {

/// Lengths of `softmax(scale * queries x keys, masked) x values`, for each combination of `outer`.
struct AttentionShape {
    Dims outer; ///< batch, heads, ...: axes of every operand; it repeats along those of stride 0
    int64_t queries, keys;
    int64_t depth; ///< of a query and a key
    int64_t width; ///< of a value
};

struct AttentionRule {
    float scale;
    Mask mask;
    float fill; ///< score of a key that a boolean mask hides
    /// Query i sees keys up to i + `ahead` only; a negative number means all keys.
    int64_t ahead;
    bool zero_if_undefined; ///< result is zero for a query whose weights are NaN
    bool zero_if_unseen;    ///< likewise if all of its scores are minus infinity
};

/// Makes an attention. Operands: queries, keys, values[, mask], target, scratch; all but a boolean
/// mask are float32. Strides in bytes, of the outer axes and then two more: query, depth; key,
/// depth; key, width; query, key; query, width. REQUIRES: the target's last is one element.
///
/// The softmax is taken over blocks of keys: each block's sum of `value * exp(score - maximum)`
/// is added to that of the blocks before it, scaled by `exp(old maximum - maximum)`.
/// Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018.
std::shared_ptr<const Kernel> attention(const AttentionShape &shape, const AttentionRule &rule,
                                        const std::vector<Dims> &strides);

} // namespace tightship::kernels
