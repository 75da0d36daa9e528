/// Types in which the rows of a decoder's caches are stored: plain data that loops for all
/// instruction sets share.
#pragma once

#include <cstdint>

namespace tightship::kernels {

/// Type of stored elements. An int8 row has its scale, a float32, behind its elements: element i is
/// `scale * row[i]`.
enum class RowType : uint8_t { kFloat32, kFloat16, kBfloat16, kInt8 };

constexpr int64_t kScaleBytes = 4;

static constexpr int64_t element_bytes(RowType type) {
    return type == RowType::kFloat32 ? 4 : type == RowType::kInt8 ? 1 : 2;
}

/// Returns how many elements a row of `width` takes, with its scale if it has one.
static constexpr int64_t stored_width(RowType type, int64_t width) {
    return type == RowType::kInt8 ? width + kScaleBytes : width;
}

} // namespace tightship::kernels
