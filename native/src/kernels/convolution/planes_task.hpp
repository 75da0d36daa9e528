/// Arguments of the loops of depthwise convolutions of planes: plain data, because the loops are
/// compiled once for each instruction set and must share no inline function with other code.
#pragma once

#include "tightship/kernels/convolution/planes.hpp"

namespace tightship::kernels {

constexpr int64_t kPlaneFloats = 4096; ///< of a tile of the source, which the nearest cache holds
constexpr int64_t kPlaneLine = 16;     ///< floats that rows of a tile are a multiple of
constexpr int kPlaneTaps = 5;          ///< taps below one another that are computed together
/// Least rows of results to compute below one another; fewer are computed side by side.
constexpr int64_t kPlaneRowsMin = 4;

constexpr int64_t kPlaneGroup = 16;         ///< planes that are computed side by side
constexpr int64_t kPlaneGroupVectors = 512; ///< vectors of these, with weights and results

/// Taps below one another, a stride apart, `source` floats from the first of a tile.
struct PlaneColumn {
    int64_t source, weight, count;
};

/// Layout of a tile of the source, with zeros for padding. Its rows and columns are sorted by their
/// remainder by the strides, so that results side by side read elements side by side, and results
/// below one another rows below one another.
struct PlaneTile {
    int64_t rows, columns; ///< of results, at most
    int64_t down, across;  ///< tiles of a plane
    int64_t pitch;         ///< floats of the columns of one remainder
    int64_t row;           ///< floats of a row: of all remainders
    int64_t same_rows;     ///< rows of one remainder
};

struct PlaneTask {
    const PlaneShape *shape;
    const PlaneTile *tile;
    const PlaneColumn *columns;
    int64_t column_count;
    const float *source, *weights, *bias;
    float *target;
};

/// Computes tiles [begin, end) of all planes of the source, one after another, or groups of
/// `kPlaneGroup` planes.
using PlaneLoop = void (*)(const PlaneTask &task, int64_t begin, int64_t end);

namespace portable {
void convolve_planes(const PlaneTask &task, int64_t begin, int64_t end);
void convolve_plane_groups(const PlaneTask &task, int64_t begin, int64_t end);
} // namespace portable
namespace avx2 {
void convolve_planes(const PlaneTask &task, int64_t begin, int64_t end);
void convolve_plane_groups(const PlaneTask &task, int64_t begin, int64_t end);
} // namespace avx2
namespace avx512 {
void convolve_planes(const PlaneTask &task, int64_t begin, int64_t end);
void convolve_plane_groups(const PlaneTask &task, int64_t begin, int64_t end);
} // namespace avx512

} // namespace tightship::kernels
