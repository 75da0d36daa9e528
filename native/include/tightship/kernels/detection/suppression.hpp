/// Non-maximum suppression: keeps the best of boxes that overlap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tightship::kernels {

/// Shapes and limits of a NonMaxSuppression; boxes are (images, boxes, 4) float32, scores (images,
/// classes, boxes) float32.
struct Suppression {
    int64_t images, classes, boxes;
    bool is_centred; ///< boxes are centre and sides, else two opposite corners
    int64_t most;    ///< most boxes that are taken of a class, >= 0
    float overlap;   ///< greatest intersection over union with a better box
    float least;     ///< a score must be greater
    bool has_least;

    /// Most boxes that a class can give.
    int64_t class_max() const { return most < boxes ? most : boxes; }
    /// Most rows of the result.
    int64_t rows_max() const { return images * classes * class_max(); }
    /// Bytes of scratch that `suppress` needs, at a boundary of 64.
    int64_t scratch_bytes() const;
};

/// Writes rows (image, class, box) of the boxes that are kept, those of a class by falling score,
/// equal scores by index; a NaN is less than every number. Returns their number. `rows` has room
/// for `rows_max()` of them. Allocates nothing.
int64_t suppress(const Suppression &limits, const float *boxes, const float *scores, int64_t *rows,
                 char *scratch);

} // namespace tightship::kernels
