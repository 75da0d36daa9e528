/// Attention of few queries over many keys, compiled once for each instruction set. Each key and
/// value is read once, as it lies in memory, for all queries of the heads that share it.
#pragma once

#include "attention_keys.hpp"
#include "attention_values.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int64_t kFetched = 16; ///< keys that are fetched ahead

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
            mix(block, count, block == first, block + count < end ? Later{} : after());
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
    void fetch(const Rows &rows, int64_t row, int64_t columns) const {
        const char *from = rows.data + (row < task_.keys ? row : task_.keys - 1) * rows.row;
        const int64_t size_bytes = stored_width(rows.type, columns) * element_bytes(rows.type);
        for (int64_t place = 0; place < size_bytes; place += kLineBytes)
            __builtin_prefetch(from + place);
    }

    /// Fetches a later key, and the value of this one.
    void fetch_at(int64_t key) const {
        fetch(task_.key, key + kFetched, task_.depth);
        if (is_adjacent(task_.value))
            fetch(task_.value, key, task_.width);
    }

    /// Computes scores; meanwhile the values come, which are read next.
    void score(int64_t first, int64_t count) {
        if (is_float(task_.key))
            return score_floats(first, count);
        const int64_t whole = rows_ / kQueriesAtOnce * kQueriesAtOnce;
        const Dots most = dots_of(task_.key.type, kQueriesAtOnce);
        const Dots rest = dots_of(task_.key.type, rows_ == whole ? 1 : rows_ - whole);
        for (int64_t key = 0; key < count; key += kKeysAtOnce) {
            const char *keys[kKeysAtOnce]; // the last key in the place of those behind it
            for (int each = 0; each < kKeysAtOnce; ++each) {
                const int64_t place = first + (key + each < count ? key + each : count - 1);
                keys[each] = task_.key.data + place * task_.key.row;
                fetch_at(place);
            }
            for (int64_t row = 0; row < rows_; row += kQueriesAtOnce)
                (row < whole ? most : rest)(queries_at(row), keys, task_.depth,
                                            scores_ + row * block_ + key, block_);
        }
    }

    void score_floats(int64_t first, int64_t count) {
        const char *keys = task_.key.data + first * task_.key.row;
        for (int64_t row = 0; row < rows_; row += 4) {
            const FloatDots some = float_dots_of(rows_ - row < 4 ? rows_ - row : 4);
            for (int64_t key = 0; key < count; ++key) {
                if (row == 0)
                    fetch_at(first + key);
                some(queries_at(row), keys + key * task_.key.row, task_.depth,
                     scores_ + row * block_ + key, block_);
            }
        }
    }

    Queries queries_at(int64_t row) const { return {queries_ + row * depth_, depth_}; }

    /// Returns the keys that are read after the last block.
    Later after() const {
        const Rows &keys = task_.key;
        const int64_t bytes = stored_width(keys.type, task_.depth) * element_bytes(keys.type);
        return {task_.next, keys.row, bytes, task_.next_count};
    }

    void mix(int64_t first, int64_t count, bool is_first, Later later) {
        for (int64_t column = 0; column < task_.width; column += kPanel) {
            const int64_t rest = task_.width - column < kPanel ? task_.width - column : kPanel;
            if (reads_stored(rest, later)) {
                mix_stored(first, count, column, rest, is_first, later);
                later.count = 0;
                continue;
            }
            const Right right = panel(first, count, column, rest);
            for (int64_t row = 0; row < rows_; row += kTileRows)
                tile_of(rows_from(row), (rest + kWidth - 1) / kWidth)(
                    left_of(row), right, count, target(row, column, is_first));
        }
    }

    /// Returns whether columns are widened in registers, or floats are read while others come: they
    /// are whole vectors.
    bool reads_stored(int64_t columns, const Later &later) const {
        return is_adjacent(task_.value) && columns % kWidth == 0 &&
               (!is_float(task_.value) || later.count > 0);
    }

    void mix_stored(int64_t first, int64_t count, int64_t column, int64_t columns, bool is_first,
                    Later later) {
        const Rows &value = task_.value;
        const int64_t skipped = column * value.column;
        const Stored stored{value.data + first * value.row + skipped, value.row,
                            task_.width - skipped};
        for (int64_t row = 0; row < rows_; row += kTileRows) {
            stored_tile_of(value.type, rows_from(row), columns / kWidth)(
                left_of(row), stored, count, later, target(row, column, is_first));
            later.count = 0;
        }
    }

    int64_t rows_from(int64_t row) const {
        return rows_ - row < kTileRows ? rows_ - row : kTileRows;
    }

    Left left_of(int64_t row) const { return {scores_ + row * block_, block_, 1}; }

    Target target(int64_t row, int64_t column, bool is_first) const {
        return {partial_.vectors + row * width_ + column, width_, is_first ? nullptr : kept_ + row,
                nullptr};
    }

    /// Returns columns of a block of values: as they lie if these are floats in whole vectors.
    Right panel(int64_t first, int64_t count, int64_t column, int64_t columns) {
        if (!is_float(task_.value)) {
            widen(task_.value, {first, count, column, columns, task_.width}, panel_, kPanel);
            return {panel_, kPanel};
        }
        const Matrix all = floats_of(task_.value, first);
        const float *values = all.data + column * all.column;
        if (all.column == 1 && columns % kWidth == 0)
            return {values, all.row};
        pack_panel(values, all.row, all.column, count, columns, panel_);
        return {panel_, kPanel};
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
