#include "split_task.hpp"

#ifdef __AMX_BF16__

#define TIGHTSHIP_ISA amx
#define TIGHTSHIP_VECTOR_BYTES 64
#include "kernels/vector_math.hpp"
#include "split_parts.hpp"

#include <immintrin.h>
// The intrinsics of GCC 12 leave some results undefined at first, and GCC warns of them.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace tightship::kernels::amx {

namespace {

constexpr int kRow = 2 * kWidth;             ///< floats of a row of sums
constexpr int kSums = 2 * kSplitTile * kRow; ///< of two tiles of rows by two of columns

template <int Tiles> void load_rows(const char *rows, int64_t next) {
    _tile_loadd(4, rows, kTileRowBytes);
    if constexpr (Tiles == 2)
        _tile_loadd(5, rows + next, kTileRowBytes);
}

void load_columns(const char *columns) {
    _tile_loadd(6, columns, kTileRowBytes);
    _tile_loadd(7, columns + kTileBytes, kTileRowBytes);
}

template <int Tiles, class Meanwhile> void add_products(const Meanwhile &meanwhile, int turn) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    meanwhile(2 * turn);
    if constexpr (Tiles == 2) {
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    meanwhile(2 * turn + 1);
}

/// Sums one or two tiles of rows by two of columns, small products first. Calls `meanwhile` twelve
/// times in each step, because the matrix unit works beside the rest of the processor, but accepts
/// few instructions in advance.
template <int Tiles, class Meanwhile>
void multiply_tiles(const char *rows, const char *columns, int64_t steps, float *sums,
                    const Meanwhile &meanwhile) {
    const int64_t next = steps * kParts * kTileBytes;
    constexpr int64_t kPart = 2 * kTileBytes;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t step = 0; step < steps; ++step) {
        load_rows<Tiles>(rows + 2 * kTileBytes, next);
        load_columns(columns);
        add_products<Tiles>(meanwhile, 0);
        load_rows<Tiles>(rows + kTileBytes, next);
        add_products<Tiles>(meanwhile, 1);
        load_columns(columns + kPart);
        add_products<Tiles>(meanwhile, 2);
        load_rows<Tiles>(rows, next);
        add_products<Tiles>(meanwhile, 3);
        load_columns(columns + 2 * kPart);
        add_products<Tiles>(meanwhile, 4);
        load_columns(columns);
        add_products<Tiles>(meanwhile, 5);
        rows += kParts * kTileBytes;
        columns += 2 * kParts * kTileBytes;
    }
    constexpr int kStride = kRow * sizeof(float);
    _tile_stored(0, sums, kStride);
    _tile_stored(1, sums + kWidth, kStride);
    _tile_stored(2, sums + kSplitTile * kRow, kStride);
    _tile_stored(3, sums + kSplitTile * kRow + kWidth, kStride);
}

/// Returns whether none of a row's sums is infinite or NaN, as they are if an operand is, or its
/// first part.
bool are_finite(Vector left, Vector right) {
    const Vector vanishing = left * 0.0F + right * 0.0F;
    return _mm512_cmp_ps_mask(vanishing, vanishing, _CMP_UNORD_Q) == 0;
}

/// Some columns of the weights, over part of the depth from `deep` on.
struct Panel {
    int64_t column, deep, depth;
};

/// Sums that are still to be written to the target.
struct Pending {
    const float *sums;
    Panel panel;
    int64_t row, rows, done;
};

/// One thread's part of a product.
class Product {
  public:
    explicit Product(const SplitTask &task)
        : task_(task), depth_(split_depth(task.shape.depth)),
          panel_floats_(round_up(task.shape.depth, kSplitTile) * kSplitPanel) {
        const int64_t columns_bytes = kSplitColumns * depth_ * kSplitBytes;
        columns_[0] = task.scratch;
        columns_[1] = task.scratch + columns_bytes;
        rows_ = task.scratch + 2 * columns_bytes;
    }

    void run() {
        if (task_.first_column >= task_.column_end || task_.first_row >= task_.row_end)
            return;
        Panel panel{task_.first_column, 0, depth_at(0)};
        next_ = columns_of(panel);
        for (int64_t row = task_.first_row; row < task_.row_end; row += kSplitRows) {
            const int64_t left = task_.row_end - row;
            do {
                if (panel.column == task_.first_column)
                    split_source(task_.source + row * task_.shape.depth + panel.deep,
                                 task_.shape.depth, left < kSplitRows ? left : kSplitRows,
                                 panel.depth, rows_);
                multiply_panel(panel, row, left < kSplitRows ? left : kSplitRows);
                panel = after(panel);
            } while (panel.column != task_.first_column || panel.deep != 0);
        }
        write(pending_.rows);
    }

  private:
    int64_t depth_at(int64_t deep) const {
        const int64_t left = task_.shape.depth - deep;
        return left < depth_ ? left : depth_;
    }

    /// Returns the panel after this one; after the last comes the first, for the next rows.
    Panel after(const Panel &panel) const {
        if (panel.column + kSplitColumns < task_.column_end)
            return {panel.column + kSplitColumns, panel.deep, panel.depth};
        const int64_t deep = panel.deep + panel.depth;
        if (deep < task_.shape.depth)
            return {task_.first_column, deep, depth_at(deep)};
        return {task_.first_column, 0, depth_at(0)};
    }

    const float *weights_of(const Panel &panel) const {
        return task_.weights + panel.column / kSplitPanel * panel_floats_ +
               panel.deep * kSplitPanel + panel.column % kSplitPanel;
    }

    Columns columns_of(const Panel &panel) {
        turn_ = 1 - turn_;
        return {weights_of(panel), panel.depth, columns_[turn_], 0, 0};
    }

    /// Multiplies some rows by a panel. Meanwhile writes pending sums to the target, splits the
    /// next panel into parts and prefetches the one after.
    void multiply_panel(const Panel &panel, int64_t row, int64_t rows) {
        next_.split_all();
        const char *columns = next_.tiles;
        const Panel following = after(panel);
        next_ = columns_of(following);
        const float *ahead = weights_of(after(following));
        const int64_t steps = (panel.depth + kSplitStep - 1) / kSplitStep;
        const int64_t pairs = (rows + 2 * kSplitTile - 1) / (2 * kSplitTile);
        const int64_t share = (kSplitStep / 8 + pairs - 1) / pairs;
        const int64_t written = (kSplitTile / 2 + steps - 1) / steps;
        const auto meanwhile = [&](int turn) {
            if (turn % 3 == 2)
                return write(written);
            for (int64_t index = 0; index < share && !next_.is_done(); ++index) {
                next_.split_some();
                fetch(ahead);
                fetch(ahead + kWidth);
                ahead += kSplitPanel;
            }
        };
        for (int64_t done = 0; done < rows; done += 2 * kSplitTile) {
            const int64_t left = rows - done;
            const char *parts = rows_ + done / kSplitTile * steps * kParts * kTileBytes;
            float *sums = sums_[done / (2 * kSplitTile) % 2];
            if (left > kSplitTile)
                multiply_tiles<2>(parts, columns, steps, sums, meanwhile);
            else
                multiply_tiles<1>(parts, columns, steps, sums, meanwhile);
            write(pending_.rows);
            pending_ = {sums, panel, row + done, left < 2 * kSplitTile ? left : 2 * kSplitTile, 0};
        }
    }

    static void fetch(const float *weights) {
        _mm_prefetch(reinterpret_cast<const char *>(weights), _MM_HINT_T1);
    }

    /// Writes up to `rows` more rows of the pending sums to the target.
    void write(int64_t rows) {
        for (; rows > 0 && pending_.done < pending_.rows; --rows, ++pending_.done) {
            const float *sums = pending_.sums + pending_.done * kRow;
            Vector left = load(sums), right = load(sums + kWidth);
            if (!are_finite(left, right))
                multiply_plainly(left, right);
            write_row(left, right);
        }
    }

    /// Recomputes sums of the pending row in float32, from the unsplit numbers.
    void multiply_plainly(Vector &left, Vector &right) const {
        const Panel &panel = pending_.panel;
        const float *source =
            task_.source + (pending_.row + pending_.done) * task_.shape.depth + panel.deep;
        const float *weights = weights_of(panel);
        left = right = Vector{};
        for (int64_t index = 0; index < panel.depth; ++index, weights += kSplitPanel) {
            const Vector factor = spread(source[index]);
            left += factor * load(weights);
            right += factor * load(weights + kWidth);
        }
    }

    void write_row(Vector left, Vector right) const {
        const Panel &panel = pending_.panel;
        const int64_t at = (pending_.row + pending_.done) * task_.shape.columns + panel.column;
        const int64_t count = task_.shape.columns - panel.column;
        const int64_t behind = count > kWidth ? count - kWidth : 0;
        float *target = task_.target + at;
        if (panel.deep == 0) {
            left += start(at, panel.column, count);
            right += start(at + kWidth, panel.column + kWidth, behind);
        } else {
            left += load_some(target, count);
            right += load_some(target + kWidth, behind);
        }
        if (panel.deep + panel.depth == task_.shape.depth) {
            left = activated(left);
            right = activated(right);
        }
        store_some(target, left, count);
        store_some(target + kWidth, right, behind);
    }

    /// Returns the initial value of sums.
    Vector start(int64_t at, int64_t column, int64_t count) const {
        Vector sum{};
        if (task_.bias != nullptr)
            sum = load_some(task_.bias + column, count);
        if (task_.addend != nullptr)
            sum += load_some(task_.addend + at, count);
        return sum;
    }

    Vector activated(Vector x) const {
        switch (task_.ending.activation) {
        case SplitActivation::kGelu:
            return 0.5F * x * (1.0F + error_function(x * 0.70710678F));
        case SplitActivation::kGeluTanh:
            return 0.5F * x * (1.0F + hyperbolic_tangent(x * (0.79788456F + 0.035677408F * x * x)));
        case SplitActivation::kSwish:
            return x * sigmoid(x);
        default:
            return _mm512_min_ps(_mm512_set1_ps(task_.ending.high),
                                 _mm512_max_ps(_mm512_set1_ps(task_.ending.low), x));
        }
    }

    const SplitTask &task_;
    int64_t depth_, panel_floats_;
    char *columns_[2], *rows_;
    int turn_ = 1;
    Columns next_{};
    Pending pending_{};
    alignas(64) float sums_[2][kSums];
};

/// Tile configuration: eight tiles of 16 rows of 64 bytes.
struct Configuration {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

} // namespace

void multiply(const SplitTask &task) {
    alignas(64) static constexpr Configuration kConfiguration;
    _tile_loadconfig(&kConfiguration);
    Product(task).run();
    _tile_release();
}

} // namespace tightship::kernels::amx

#else

namespace tightship::kernels::amx {

void multiply(const SplitTask &) {}

} // namespace tightship::kernels::amx

#endif
