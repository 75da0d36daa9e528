/// Loops of attention, compiled once for each instruction set.
#pragma once

#include "attention_task.hpp"
#include "kernels/vector_math.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr float kInfinity = __builtin_inff();

typedef uint8_t Bytes __attribute__((vector_size(kWidth)));
typedef Bytes UnalignedBytes __attribute__((aligned(1), may_alias));

/// Reduces all lanes to one by `join`, halves onto halves.
template <class Join> inline float joined(Vector values, const Join &join) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    values = join(values, __builtin_shufflevector(values, values, 8, 9, 10, 11, 12, 13, 14, 15, 0,
                                                  1, 2, 3, 4, 5, 6, 7));
#endif
#if TIGHTSHIP_VECTOR_BYTES >= 32
    typedef float Eight __attribute__((vector_size(32)));
    Eight half;
    __builtin_memcpy(&half, &values, sizeof half);
    half = join(half, __builtin_shufflevector(half, half, 4, 5, 6, 7, 0, 1, 2, 3));
#else
    const Vector half = values;
#endif
    return join(join(half[0], half[1]), join(half[2], half[3]));
}

inline float largest_of(Vector values) {
    return joined(values, [](auto left, auto right) { return left > right ? left : right; });
}

inline float sum_of(Vector values) {
    return joined(values, [](auto left, auto right) { return left + right; });
}

inline Ints lanes() {
    Ints result{};
    for (int lane = 0; lane < kWidth; ++lane)
        result[lane] = lane;
    return result;
}

/// Mask of up to a vector of scores.
class MaskRow {
  public:
    MaskRow(const AttentionTask &task, int64_t query, int64_t first_key)
        : data_(task.mask == nullptr
                    ? nullptr
                    : task.mask + query * task.mask_row + first_key * task.mask_column),
          step_(task.mask_column), fill_(task.fill), kind_(task.mask_kind) {}

    Vector apply(Vector scores, int64_t key, int64_t count) const {
        if (data_ == nullptr)
            return scores;
        if (kind_ == Mask::kKept)
            return set(key, count) ? scores : spread(fill_);
        if (kind_ == Mask::kHidden)
            return set(key, count) ? spread(fill_) : scores;
        return scores + added(key, count);
    }

  private:
    Vector added(int64_t key, int64_t count) const {
        if (step_ == 4 && count >= kWidth)
            return load(reinterpret_cast<const float *>(data_) + key);
        Vector result{};
        for (int64_t lane = 0; lane < kWidth && lane < count; ++lane)
            result[lane] = *reinterpret_cast<const float *>(data_ + (key + lane) * step_);
        return result;
    }
    Ints set(int64_t key, int64_t count) const {
        if (step_ == 1 && count >= kWidth)
            return __builtin_convertvector(*reinterpret_cast<const UnalignedBytes *>(data_ + key),
                                           Ints) != 0;
        Ints result{};
        for (int64_t lane = 0; lane < kWidth && lane < count; ++lane)
            result[lane] = data_[(key + lane) * step_] != 0 ? -1 : 0;
        return result;
    }

    const char *data_;
    int64_t step_;
    float fill_;
    Mask kind_;
};

/// Loops of one head, with their state between blocks of keys.
class Head {
  public:
    explicit Head(const AttentionTask &task)
        : task_(task), block_(key_block(task.keys)), keys_(task.scratch),
          values_(keys_ + block_ * task.depth), scores_(values_ + block_ * panels(task.width)),
          maxima_(scores_ + panels((task.queries < kRowBlock ? task.queries : kRowBlock) * block_)),
          sums_(maxima_ + task.queries), kept_(maxima_ + panels(2 * task.queries)),
          factors_(kept_ + kPanelFloats) {}

    void run() {
        for (int64_t first = 0; first < task_.keys; first += block_) {
            const int64_t left = task_.keys - first;
            const int64_t count = left < block_ ? left : block_;
            if (seen(task_.queries - 1, first, count) <= 0)
                return;
            pack(first, count);
            for (int64_t row = 0; row < task_.queries; row += kRowBlock) {
                const int64_t rest = task_.queries - row;
                rows(row, rest < kRowBlock ? rest : kRowBlock, first, count);
            }
        }
    }

  private:
    /// Returns how many keys of a block a query sees.
    int64_t seen(int64_t query, int64_t first, int64_t count) const {
        if (task_.ahead < 0)
            return count;
        const int64_t visible = task_.first_query + query + task_.ahead + 1 - first;
        return visible < 0 ? 0 : visible < count ? visible : count;
    }

    /// Returns whether the block is the last that some of the rows up to `query` see.
    bool is_last(int64_t query, int64_t first) const {
        const int64_t next = first + block_;
        return next >= task_.keys || seen(query, next, 1) == 0;
    }

    void pack(int64_t first, int64_t count) {
        if (!by_dots())
            for (int64_t key = 0; key < count; key += kPanel)
                pack_panel(task_.key.data + (first + key) * task_.key.row, task_.key.column,
                           task_.key.row, task_.depth, count - key < kPanel ? count - key : kPanel,
                           keys_ + key * task_.depth);
        for (int64_t column = 0; column < task_.width; column += kPanel) {
            const int64_t rest = task_.width - column;
            if (packs_value(rest))
                pack_panel(task_.value.data + first * task_.value.row + column * task_.value.column,
                           task_.value.row, task_.value.column, count,
                           rest < kPanel ? rest : kPanel, values_ + column * block_);
        }
    }

    /// Returns whether queries are too few for packing their keys to pay.
    bool by_dots() const { return task_.queries < 4 && task_.key.column == 1; }

    /// Returns whether the panel of values of which `rest` columns are left is read from a copy.
    bool packs_value(int64_t rest) const {
        return task_.value.column != 1 || (rest < kPanel && rest % kWidth != 0) ||
               task_.queries >= 2 * kRowBlock;
    }

    void rows(int64_t row, int64_t count, int64_t first, int64_t keys) {
        const int64_t visible = seen(row + count - 1, first, keys);
        if (visible <= 0)
            return;
        score(row, count, first, visible);
        const bool last = is_last(row + count - 1, first);
        for (int64_t index = 0; index < count; ++index)
            weigh(row + index, index, first, visible);
        mix(row, count, first, visible);
        if (last)
            finish(row, count);
    }

    void score(int64_t row, int64_t count, int64_t first, int64_t visible) {
        const float *queries = task_.query.data + row * task_.query.row;
        if (by_dots())
            return dots(queries, count, first, visible);
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

    void dots(const float *queries, int64_t count, int64_t first, int64_t visible) {
        const float *keys = task_.key.data + first * task_.key.row;
        for (int64_t row = 0; row < count; ++row)
            for (int64_t key = 0; key < visible; ++key)
                scores_[row * block_ + key] =
                    dot(queries + row * task_.query.row, keys + key * task_.key.row);
    }

    float dot(const float *query, const float *key) const {
        Vector sums{};
        int64_t index = 0;
        if (task_.query.column == 1)
            for (; index + kWidth <= task_.depth; index += kWidth)
                sums += load(query + index) * load(key + index);
        float sum = sum_of(sums);
        for (; index < task_.depth; ++index)
            sum += query[index * task_.query.column] * key[index];
        return sum;
    }

    /// Turns the scores of a query into weights relative to the largest score so far.
    void weigh(int64_t query, int64_t row, int64_t first, int64_t visible) {
        float *scores = scores_ + row * block_;
        const int64_t valid = seen(query, first, visible);
        const MaskRow mask(task_, query, first);
        const float before = first == 0 ? -kInfinity : maxima_[query];
        Vector largest = spread(before);
        for (int64_t key = 0; key < visible; key += kWidth) {
            Vector each = mask.apply(load(scores + key) * task_.scale, key, visible - key);
            if (key + kWidth > valid)
                each = lanes() < static_cast<int32_t>(valid - key) ? each : spread(-kInfinity);
            store(scores + key, each);
            largest = each > largest ? each : largest;
        }
        const float maximum = largest_of(largest);
        const float origin = maximum == -kInfinity ? 0.0F : maximum;
        Vector sums{};
        for (int64_t key = 0; key < visible; key += kWidth) {
            const Vector weight = exponential(load(scores + key) - origin);
            store(scores + key, weight);
            sums += weight;
        }
        kept_[row] = first == 0 ? 0.0F : __builtin_expf(before - origin);
        sums_[query] = sum_of(sums) + (first == 0 ? 0.0F : kept_[row] * sums_[query]);
        maxima_[query] = maximum;
        factors_[row] = 1.0F / sums_[query];
    }

    void mix(int64_t row, int64_t count, int64_t first, int64_t visible) {
        const float *kept = first == 0 ? nullptr : kept_;
        const float *factors = is_last(row + count - 1, first) ? factors_ : nullptr;
        for (int64_t column = 0; column < task_.width; column += kPanel) {
            const int64_t rest = task_.width - column;
            const Right right =
                packs_value(rest)
                    ? Right{values_ + column * block_, kPanel}
                    : Right{task_.value.data + first * task_.value.row + column, task_.value.row};
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
            if ((task_.zero_if_undefined && !(sums_[query] > 0)) ||
                (task_.zero_if_unseen && sums_[query] == 0))
                for (int64_t column = 0; column < task_.width; ++column)
                    task_.target[query * task_.target_row + column] = 0.0F;
    }

    const AttentionTask &task_;
    int64_t block_;
    float *keys_, *values_, *scores_, *maxima_, *sums_, *kept_, *factors_;
};

} // namespace

void attend(const AttentionTask &task) {
    Head(task).run();
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
