/// Copies between two layouts of one shape, near the speed of memory.
#pragma once

#include "tightship/kernels/loop_nest.hpp"

namespace tightship::kernels {

/// Immutable copy. Axes are walked in the order of their strides in the target, whatever their
/// order in the shape.
class StridedCopy {
  public:
    /// REQUIRES: `item_bytes` is 1, 2, 4, 8 or 16; no two target elements overlap. Strides in
    /// bytes, any sign, 0 repeats a source element.
    StridedCopy(int64_t item_bytes, const Dims &shape, const Dims &source_strides,
                const Dims &target_strides);

    void run(const char *source, char *target, int threads) const;

    Reach source_reach() const { return source_reach_; }
    Reach target_reach() const { return target_reach_; }

  private:
    struct Axes;
    /// Length and strides of the two axes that a transposition swaps.
    struct Tiles {
        int64_t columns, column_step; ///< contiguous in the source; bytes in the target
        int64_t rows, row_step;       ///< contiguous in the target; bytes in the source
        int64_t tile_rows, tile_columns;
    };

    void run_rows(const char *source, char *target, int threads) const;
    void run_tiles(const char *source, char *target, int threads) const;

    Reach source_reach_, target_reach_;
    int64_t item_bytes_ = 1;
    bool is_streamed_ = false; ///< whether rows are long and bytes exceed the caches
    Tiles tiles_{};            ///< no columns if nothing is transposed
    LoopNest<2> rows_;
    LoopNest<4> tile_nest_; ///< source, target, first column, first row of a tile
};

} // namespace tightship::kernels
