/// Attention of few queries over many keys, compiled once for each instruction set. Each key and
/// value is read once, as it lies in memory, for all queries of the heads that share it.
#pragma once

#include "attention_scores.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int64_t kFetched = 16; ///< keys that are fetched ahead

/// Adds products of a key with `Rows` queries that lie `step` elements apart.
template <int Rows>
void dots(const float *queries, int64_t step, const float *key, int64_t depth, float *scores,
          int64_t scores_step) {
    Vector sums[Rows] = {};
    for (int64_t index = 0; index < depth; index += kWidth) {
        const Vector some = load_some(key + index, depth - index);
#pragma GCC unroll 4
        for (int row = 0; row < Rows; ++row)
            sums[row] += load(queries + row * step + index) * some;
    }
#pragma GCC unroll 4
    for (int row = 0; row < Rows; ++row)
        scores[row * scores_step] = sum_of(sums[row]);
}

/// Loops of the heads that share keys, for one split of these.
class Few {
  public:
    Few(const AttentionTask &task, const Partial &partial)
        : task_(task), partial_(partial), rows_(task.queries * task.group),
          depth_(panels(task.depth)), width_(panels(task.width)), block_(task.block),
          queries_(task.scratch), scores_(queries_ + rows_ * depth_),
          kept_(scores_ + rows_ * block_), panel_(kept_ + panels(rows_)) {}

    void run(int64_t first, int64_t end) {
        copy_queries();
        Weights weights[kRowBlock];
        for (int64_t block = first; block < end; block += block_) {
            const int64_t count = end - block < block_ ? end - block : block_;
            score(block, count);
            for (int64_t row = 0; row < rows_; ++row) {
                const int64_t query = row % task_.queries;
                kept_[row] = weights[row].add(task_, scores_ + row * block_,
                                              MaskRow(task_, query, block, row / task_.queries),
                                              count, seen_by(task_, query, block, count));
            }
            mix(block, count, block == first);
        }
        for (int64_t row = 0; row < rows_; ++row) {
            partial_.maxima[row] = weights[row].maximum;
            partial_.sums[row] = weights[row].sum;
        }
    }

  private:
    /// Copies queries to rows of whole panels with zeros at their end, those of a head together.
    void copy_queries() {
        for (int64_t row = 0; row < rows_; ++row) {
            const float *from = task_.query.data + row / task_.queries * task_.query_group +
                                row % task_.queries * task_.query.row;
            for (int64_t index = 0; index < depth_; ++index)
                queries_[row * depth_ + index] =
                    index < task_.depth ? from[index * task_.query.column] : 0.0F;
        }
    }

    /// Fetches a row ahead of its use; the last one in the place of those behind it.
    void fetch(const Matrix &matrix, int64_t row, int64_t columns) const {
        const float *from = matrix.data + (row < task_.keys ? row : task_.keys - 1) * matrix.row;
        for (int64_t column = 0; column < columns; column += kLineBytes / 4)
            __builtin_prefetch(from + column);
    }

    /// Computes scores; meanwhile the values come, which are read next.
    void score(int64_t first, int64_t count) {
        constexpr void (*kDots[])(const float *, int64_t, const float *, int64_t, float *,
                                  int64_t) = {dots<1>, dots<2>, dots<3>, dots<4>};
        const float *keys = task_.key.data + first * task_.key.row;
        for (int64_t row = 0; row < rows_; row += 4) {
            const auto some = kDots[(rows_ - row < 4 ? rows_ - row : 4) - 1];
            for (int64_t key = 0; key < count; ++key) {
                if (row == 0) {
                    fetch(task_.key, first + key + kFetched, task_.depth);
                    if (task_.value.column == 1)
                        fetch(task_.value, first + key, task_.width);
                }
                some(queries_ + row * depth_, depth_, keys + key * task_.key.row, task_.depth,
                     scores_ + row * block_ + key, block_);
            }
        }
    }

    void mix(int64_t first, int64_t count, bool is_first) {
        for (int64_t column = 0; column < task_.width; column += kPanel) {
            const int64_t rest = task_.width - column < kPanel ? task_.width - column : kPanel;
            const float *values =
                task_.value.data + first * task_.value.row + column * task_.value.column;
            Right right{values, task_.value.row};
            if (task_.value.column != 1 || rest % kWidth != 0) {
                pack_panel(values, task_.value.row, task_.value.column, count, rest, panel_);
                right = {panel_, kPanel};
            }
            for (int64_t row = 0; row < rows_; row += kTileRows) {
                const int64_t some = rows_ - row < kTileRows ? rows_ - row : kTileRows;
                tile_of(some, (rest + kWidth - 1) /
                                  kWidth)({scores_ + row * block_, block_, 1}, right, count,
                                          {partial_.vectors + row * width_ + column, width_,
                                           is_first ? nullptr : kept_ + row, nullptr});
            }
        }
    }

    const AttentionTask &task_;
    const Partial &partial_;
    int64_t rows_, depth_, width_, block_;
    float *queries_, *scores_, *kept_, *panel_;
};

/// Joins the splits of a row, in order, and writes its target.
inline void merge_row(const AttentionTask &task, const Partial &partial, int64_t splits,
                      int64_t row) {
    const int64_t head = row / task.queries, query = row % task.queries;
    float *target = task.target + head * task.target_group + query * task.target_row;
    Weights all;
    for (int64_t split = 0; split < splits; ++split) {
        const float each = partial.maxima[split * partial.step + row];
        all.maximum = each > all.maximum ? each : all.maximum;
    }
    for (int64_t column = 0; column < task.width; ++column)
        target[column] = 0.0F;
    for (int64_t split = 0; split < splits; ++split) {
        const int64_t place = split * partial.step;
        const float sum = partial.sums[place + row];
        if (sum == 0)
            continue;
        const float kept = __builtin_expf(partial.maxima[place + row] - all.origin());
        all.sum += kept * sum;
        const float *vector = partial.vectors + place + row * panels(task.width);
        for (int64_t column = 0; column < task.width; ++column)
            target[column] += kept * vector[column];
    }
    if (is_void(task, all))
        return write_unseen(task, target);
    const float factor =
        all.factor(task.sink == nullptr ? nullptr : task.sink + head * task.sink_group);
    for (int64_t column = 0; column < task.width; ++column)
        target[column] *= factor;
}

inline void merge(const AttentionTask &task, const Partial &partial, int64_t splits) {
    for (int64_t row = 0; row < task.queries * task.group; ++row)
        merge_row(task, partial, splits, row);
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
