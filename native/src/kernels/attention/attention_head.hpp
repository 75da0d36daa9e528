/// Attention of one head for many queries, compiled once for each instruction set.
#pragma once

#include "attention_scores.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Loops of one head, with their state between blocks of keys.
class Head {
  public:
    explicit Head(const AttentionTask &task)
        : task_(task), block_(task.block), keys_(task.scratch),
          values_(keys_ + block_ * task.depth), scores_(values_ + block_ * panels(task.width)),
          weights_(reinterpret_cast<Weights *>(
              scores_ + panels((task.queries < kRowBlock ? task.queries : kRowBlock) * block_))),
          kept_(reinterpret_cast<float *>(weights_) + panels(2 * task.queries)),
          factors_(kept_ + kPanelFloats), wide_(factors_ + kPanelFloats) {}

    void run() {
        for (int64_t row = 0; row < task_.queries; row += kRowBlock)
            begin(row, rows_from(row));
        const int64_t end = high(task_.queries - 1);
        for (int64_t first = low(0) / block_ * block_; first < end; first += block_) {
            const int64_t left = task_.keys - first;
            const int64_t count = left < block_ ? left : block_;
            pack(first, count);
            for (int64_t row = 0; row < task_.queries; row += kRowBlock)
                rows(row, rows_from(row), first, count);
        }
    }

  private:
    int64_t rows_from(int64_t row) const {
        const int64_t rest = task_.queries - row;
        return rest < kRowBlock ? rest : kRowBlock;
    }

    /// Returns the first key that a query sees.
    int64_t low(int64_t query) const {
        const int64_t key = task_.lower + query;
        return key < 0 ? 0 : key;
    }

    /// Returns the end of the keys that a query sees.
    int64_t high(int64_t query) const { return seen_by(task_, query, 0, task_.keys).to; }

    void begin(int64_t row, int64_t count) {
        for (int64_t query = row; query < row + count; ++query)
            weights_[query] = Weights{};
        if (low(row) < high(row + count - 1))
            return;
        for (int64_t query = row; query < row + count; ++query)
            write_unseen(task_, task_.target + query * task_.target_row);
    }

    void pack(int64_t first, int64_t count) {
        const Matrix key = widened(task_.key, first, count, task_.depth);
        for (int64_t row = 0; row < count; row += kPanel)
            pack_panel(key.data + row * key.row, key.column, key.row, task_.depth,
                       count - row < kPanel ? count - row : kPanel, keys_ + row * task_.depth);
        const Matrix value = widened(task_.value, first, count, task_.width);
        for (int64_t column = 0; column < task_.width; column += kPanel) {
            const int64_t rest = task_.width - column;
            if (packs_value(rest))
                pack_panel(value.data + column * value.column, value.row, value.column, count,
                           rest < kPanel ? rest : kPanel, values_ + column * block_);
        }
    }

    /// Returns rows from `first` on as floats: as they lie, or the only copy of a block.
    Matrix widened(const Rows &rows, int64_t first, int64_t count, int64_t columns) {
        if (is_float(rows))
            return floats_of(rows, first);
        const int64_t row = panels(columns);
        widen(rows, {first, count, 0, columns, columns}, wide_, row);
        return {wide_, row, 1};
    }

    /// Returns whether the panel of values of which `rest` columns are left is read from a copy.
    bool packs_value(int64_t rest) const {
        return !is_float(task_.value) || !is_adjacent(task_.value) ||
               (rest < kPanel && rest % kWidth != 0) || task_.queries >= 2 * kRowBlock;
    }

    /// Adds a block of keys to rows that see some of it.
    void rows(int64_t row, int64_t count, int64_t first, int64_t keys) {
        const int64_t start = low(row), end = high(row + count - 1);
        const int64_t visible = end - first < keys ? end - first : keys;
        if (visible <= 0 || start >= first + keys || start >= end)
            return;
        score(row, count, visible);
        for (int64_t index = 0; index < count; ++index)
            weigh(row + index, index, first, visible);
        const bool is_last = first + block_ >= end;
        mix(row, count, first, visible, first <= start, is_last);
        if (is_last)
            finish(row, count);
    }

    void score(int64_t row, int64_t count, int64_t visible) {
        const float *queries = task_.query.data + row * task_.query.row;
        for (int64_t key = 0; key < visible; key += kPanel) {
            const int64_t rest = visible - key < kPanel ? visible - key : kPanel;
            const Right right{keys_ + key * task_.depth, kPanel};
            const int64_t vectors = (rest + kWidth - 1) / kWidth;
            for (int64_t index = 0; index < count; index += kTileRows) {
                const int64_t some = count - index < kTileRows ? count - index : kTileRows;
                tile_of(some, vectors)(
                    {queries + index * task_.query.row, task_.query.row, task_.query.column}, right,
                    task_.depth, {scores_ + index * block_ + key, block_, nullptr, nullptr});
            }
        }
    }

    void weigh(int64_t query, int64_t row, int64_t first, int64_t visible) {
        kept_[row] =
            weights_[query].add(task_, scores_ + row * block_, MaskRow(task_, query, first),
                                visible, seen_by(task_, query, first, visible));
        factors_[row] = weights_[query].factor(task_.sink);
    }

    void mix(int64_t row, int64_t count, int64_t first, int64_t visible, bool is_first,
             bool is_last) {
        const float *kept = is_first ? nullptr : kept_;
        const float *factors = is_last ? factors_ : nullptr;
        const Matrix value = floats_of(task_.value, first);
        for (int64_t column = 0; column < task_.width; column += kPanel) {
            const int64_t rest = task_.width - column;
            const Right right = packs_value(rest) ? Right{values_ + column * block_, kPanel}
                                                  : Right{value.data + column, value.row};
            for (int64_t index = 0; index < count; index += kTileRows) {
                const int64_t some = count - index < kTileRows ? count - index : kTileRows;
                const Target target{task_.target + (row + index) * task_.target_row + column,
                                    task_.target_row, kept == nullptr ? nullptr : kept + index,
                                    factors == nullptr ? nullptr : factors + index};
                product({scores_ + index * block_, block_, 1}, right, visible, target, some,
                        rest < kPanel ? rest : kPanel);
            }
        }
    }

    /// Computes a tile and keeps only `columns` of it.
    void product(const Left &left, const Right &right, int64_t depth, const Target &target,
                 int64_t rows, int64_t columns) {
        const int64_t vectors = (columns + kWidth - 1) / kWidth;
        const Tile tile = tile_of(rows, vectors);
        if (columns == vectors * kWidth)
            return tile(left, right, depth, target);
        float whole[kTileRows * kPanel];
        tile(left, right, depth, {whole, kPanel, nullptr, nullptr});
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t column = 0; column < columns; ++column) {
                float &to = target.data[row * target.row + column];
                const float sum = whole[row * kPanel + column] +
                                  (target.kept == nullptr ? 0.0F : to * target.kept[row]);
                to = target.factor == nullptr ? sum : sum * target.factor[row];
            }
    }

    void finish(int64_t row, int64_t count) {
        for (int64_t query = row; query < row + count; ++query)
            if (is_void(task_, weights_[query]))
                write_unseen(task_, task_.target + query * task_.target_row);
    }

    const AttentionTask &task_;
    int64_t block_;
    float *keys_, *values_, *scores_;
    Weights *weights_;
    float *kept_, *factors_;
    float *wide_; ///< block of keys or values, if these are not floats
};

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
