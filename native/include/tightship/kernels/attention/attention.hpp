/// Attention that takes a block of keys at a time, so that its matrix of scores is never stored.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/attention/mask.hpp"
#include "tightship/kernels/loop_nest.hpp"
#include "tightship/kernels/row_type.hpp"

#include <memory>
#include <string>

namespace tightship::kernels {

/// Lengths of `softmax(scale * queries x keys, masked) x values`, for each combination of `outer`.
struct AttentionShape {
    Dims outer; ///< batch, heads, ...: axes of every operand; it repeats along those of stride 0
    int64_t queries, keys;
    int64_t depth; ///< of a query and a key
    int64_t width; ///< of a value
    RowType key_type = RowType::kFloat32, value_type = RowType::kFloat32;
};

/// Query i has the position `first` + i or, if keys are counted at run time, the one that gives the
/// last query the position of the last key in use.
struct AttentionRule {
    float scale;
    Mask mask;
    float fill;             ///< score of a key that a boolean mask hides
    int64_t ahead;          ///< a query sees keys up to its position + `ahead`; negative: all
    int64_t behind;         ///< and from its position - `behind` on; negative: all
    int64_t first;          ///< position of the first query, if keys are not counted
    float cap;              ///< before masks, scores become cap * tanh(score / cap), unless it is 0
    bool counted;           ///< the number of keys in use is an operand
    bool sinks;             ///< scores of keys without value are an operand, one for each head
    bool zero_if_undefined; ///< result is zero for a query whose weights are NaN
    bool zero_if_unseen;    ///< likewise if all of its scores are minus infinity
};

/// Newest instructions that a kernel may use; loops are those of the processor at most.
enum class AttentionLevel : uint8_t { kPortable, kAvx2, kAvx512 };

/// Makes an attention. Operands: queries, keys, values[, mask][, lengths][, sinks], target,
/// scratch; all but keys and values of another type, a boolean mask and lengths (int64) are
/// float32. Strides in bytes, of the outer axes and then two more: query, depth; key, depth; key,
/// width; query, key; query, width; none for lengths and sinks. REQUIRES: the target's last is one
/// element, and so are those of keys and values of int8, which have their scales behind them.
///
/// Keys and values of other types are widened in registers if queries are few, else a block at a
/// time; sums are of float32.
///
/// With lengths, `keys` is the capacity: keys beyond a length are not read, and results and scratch
/// are the same for every capacity. A length outside of it is a KernelError; 0 is permitted if the
/// rule says zero for a query that sees nothing.
///
/// The softmax is taken over blocks of keys: each block's sum of `value * exp(score - maximum)`
/// is added to that of the blocks before it, scaled by `exp(old maximum - maximum)`. Few queries
/// split their keys, by a rule that does not depend on threads; the splits are joined in order.
/// Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018.
std::shared_ptr<const Kernel> attention(const std::string &node, const AttentionShape &shape,
                                        const AttentionRule &rule, const std::vector<Dims> &strides,
                                        AttentionLevel most);

} // namespace tightship::kernels
