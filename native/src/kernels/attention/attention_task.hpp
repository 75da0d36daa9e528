/// Arguments of the loops of attention: plain data, because the loops are compiled once for each
/// instruction set and must share no inline function with other code.
#pragma once

#include "tightship/kernels/attention/mask.hpp"

#include <cstdint>

namespace tightship::kernels {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kRowBlock = 48;    ///< queries whose scores lie in the cache at once
constexpr int64_t kKeyBlock = 256;   ///< keys, likewise; a multiple of every panel's width
constexpr int64_t kPanelFloats = 64; ///< that every panel's width divides

/// Matrix of floats under strides in elements.
struct Matrix {
    const float *data;
    int64_t row, column;
};

/// Some queries of one head against all its keys.
struct AttentionTask {
    Matrix query, key, value;
    const char *mask;              ///< null for none; its first row is the first query's
    int64_t mask_row, mask_column; ///< bytes
    Mask mask_kind;
    float *target;
    int64_t target_row;
    int64_t first_query; ///< number of the first of them, for `ahead`
    int64_t queries, keys, depth, width;
    float scale, fill;
    int64_t ahead; ///< negative: every query sees all keys
    bool zero_if_undefined, zero_if_unseen;
    float *scratch; ///< `attention_scratch_floats`
};

/// Rounds a number of elements up to whole panels.
static constexpr int64_t panels(int64_t count) {
    return (count + kPanelFloats - 1) / kPanelFloats * kPanelFloats;
}

static constexpr int64_t key_block(int64_t keys) {
    const int64_t blocks = (keys + kKeyBlock - 1) / kKeyBlock;
    return panels((keys + blocks - 1) / blocks);
}

static constexpr int64_t attention_scratch_floats(int64_t queries, int64_t keys, int64_t depth,
                                                  int64_t width) {
    const int64_t block = key_block(keys);
    const int64_t rows = queries < kRowBlock ? queries : kRowBlock;
    return block * depth + block * panels(width) + panels(rows * block) + panels(2 * queries) +
           2 * kPanelFloats;
}

using AttentionLoop = void (*)(const AttentionTask &);

namespace portable {
void attend(const AttentionTask &task);
}
namespace avx2 {
void attend(const AttentionTask &task);
}
namespace avx512 {
void attend(const AttentionTask &task);
}

} // namespace tightship::kernels
