/// Arguments of the loops of attention: plain data, because the loops are compiled once for each
/// instruction set and must share no inline function with other code.
#pragma once

#include "tightship/kernels/attention/mask.hpp"
#include "tightship/kernels/row_type.hpp"

#include <cstdint>

namespace tightship::kernels {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kRowBlock = 48;     ///< queries whose scores lie in the cache at once
constexpr int64_t kKeyBlock = 256;    ///< keys, likewise; a multiple of every panel's width
constexpr int64_t kPanelFloats = 64;  ///< that every panel's width divides
constexpr int64_t kFewRows = 16;      ///< queries of heads that share keys, too few to pack these
constexpr int64_t kPackedQueries = 4; ///< queries of a head that pay for packing its keys
constexpr int64_t kFarKey = int64_t{1} << 40; ///< beyond every key

/// Matrix of floats under strides in elements.
struct Matrix {
    const float *data;
    int64_t row, column;
};

/// Matrix of keys or values as they are stored, under strides in bytes.
struct Rows {
    const char *data;
    int64_t row, column;
    RowType type;
};

static constexpr bool is_float(const Rows &rows) {
    return rows.type == RowType::kFloat32;
}

/// Returns whether the elements of a row are adjacent.
static constexpr bool is_adjacent(const Rows &rows) {
    return rows.column == element_bytes(rows.type);
}

/// Returns rows from `first` on. REQUIRES: they are floats.
static inline Matrix floats_of(const Rows &rows, int64_t first) {
    return {reinterpret_cast<const float *>(rows.data + first * rows.row), rows.row / 4,
            rows.column / 4};
}

/// Some queries of one head, or of `group` heads that share keys, against these keys.
struct AttentionTask {
    Matrix query;
    Rows key, value;
    const char *mask;              ///< null for none; its first row is the first query's
    int64_t mask_row, mask_column; ///< bytes
    Mask mask_kind;
    float *target;
    int64_t target_row;
    int64_t group, query_group, mask_group, target_group; ///< heads, and distances between them
    int64_t queries, keys, depth, width;
    int64_t block;      ///< keys whose scores lie in the cache at once
    int64_t lower;      ///< first key that the first query sees; the next one's is one further
    int64_t upper;      ///< last key that the first query sees, likewise
    float scale, cap;   ///< without `cap` (0), scores have no bound
    float fill;         ///< score of a key that a boolean mask hides
    const float *sink;  ///< null for none; score of a key without value, one for each head
    int64_t sink_group; ///< elements from one head's to the next
    bool zero_if_undefined, zero_if_unseen;
    float *scratch;
    const char *next;   ///< few queries: keys of the head that the thread takes next
    int64_t next_count; ///< those to fetch, at most a block; 0 for none
};

/// Sums of the keys of one split, for `few` rows; a split with no key has a maximum of -infinity.
struct Partial {
    float *vectors, *maxima, *sums;
    int64_t step; ///< elements from one split to the next
};

/// Rounds a number of elements up to whole panels.
static constexpr int64_t panels(int64_t count) {
    return (count + kPanelFloats - 1) / kPanelFloats * kPanelFloats;
}

/// Returns a length of blocks that cuts the keys into equal ones.
static constexpr int64_t even_block(int64_t keys) {
    const int64_t blocks = (keys + kKeyBlock - 1) / kKeyBlock;
    return panels((keys + blocks - 1) / blocks);
}

static constexpr int64_t attention_scratch_floats(int64_t queries, int64_t block, int64_t depth,
                                                  int64_t width, bool widens) {
    const int64_t rows = queries < kRowBlock ? queries : kRowBlock;
    return block * depth + block * panels(width) + panels(rows * block) + panels(2 * queries) +
           2 * kPanelFloats + (widens ? block * panels(depth > width ? depth : width) : 0);
}

/// Scratch of a thread for few rows: queries, scores, factors, and one panel of values if these
/// cannot be read as they lie.
static constexpr int64_t few_scratch_floats(int64_t rows, int64_t block, int64_t depth,
                                            bool packs) {
    return rows * panels(depth) + rows * block + panels(rows) + (packs ? block * kPanelFloats : 0);
}

static constexpr int64_t partial_floats(int64_t rows, int64_t width) {
    return rows * panels(width) + panels(2 * rows);
}

static inline Partial partial_at(float *data, int64_t rows, int64_t width) {
    float *const maxima = data + rows * panels(width);
    return {data, maxima, maxima + rows, partial_floats(rows, width)};
}

/// Loops for an instruction set.
struct AttentionLoops {
    void (*attend)(const AttentionTask &); ///< all keys of the task, for one head
    /// Keys [first, end) of the task, for all of its heads.
    void (*attend_few)(const AttentionTask &, int64_t first, int64_t end, const Partial &);
    void (*merge)(const AttentionTask &, const Partial &, int64_t splits); ///< writes the target
};

namespace portable {
extern const AttentionLoops attention_loops;
}
namespace avx2 {
extern const AttentionLoops attention_loops;
}
namespace avx512 {
extern const AttentionLoops attention_loops;
}

} // namespace tightship::kernels
