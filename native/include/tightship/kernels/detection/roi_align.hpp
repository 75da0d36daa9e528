/// Regions of an image, sampled to one size.
#pragma once

#include <cstdint>

namespace tightship::kernels {

/// Shapes and settings of a RoiAlign of row-major float32 images (images, channels, height, width).
struct RoiAlign {
    int64_t images, channels, height, width;
    int64_t regions;
    int64_t rows, columns; ///< of the result of a region
    int64_t samples;       ///< along each axis of a cell; 0 takes one a pixel
    float scale;           ///< pixels for a unit of the regions' coordinates
    bool is_half_pixel;    ///< coordinates count from the corner of the first pixel
    bool is_largest;       ///< the largest weighed tap counts, instead of the mean of samples
};

/// Writes (regions, channels, rows, columns) from regions (x, y, x, y) of the images at `owners`,
/// each in [0, images). Throws std::bad_alloc, or std::invalid_argument for cells of more samples
/// than memory should hold.
void roi_align(const RoiAlign &settings, const float *images, const float *regions,
               const int64_t *owners, float *target, int threads);

} // namespace tightship::kernels
