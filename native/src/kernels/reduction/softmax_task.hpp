/// Loops of softmax over rows of float32, compiled once for each instruction set.
#pragma once

#include <cstdint>

namespace tightship::kernels {

/// Computes rows [begin, end) of `length` elements; the target may be the source.
using SoftmaxLoop = void (*)(const float *source, float *target, int64_t length, int64_t begin,
                             int64_t end);

namespace portable {
void softmax_rows(const float *source, float *target, int64_t length, int64_t begin, int64_t end);
} // namespace portable
namespace avx2 {
void softmax_rows(const float *source, float *target, int64_t length, int64_t begin, int64_t end);
} // namespace avx2
namespace avx512 {
void softmax_rows(const float *source, float *target, int64_t length, int64_t begin, int64_t end);
} // namespace avx512

} // namespace tightship::kernels
