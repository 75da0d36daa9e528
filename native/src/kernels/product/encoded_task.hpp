/// Arguments of the loops of a product by encoded rows.
#pragma once

#include "block_task.hpp"

#include "tightship/kernels/product/encoded_rows.hpp"

namespace tightship::kernels {

/// Task whose matrix has encoded rows; of the format only `quants_row`, the bytes of a row, counts.
struct EncodedTask {
    BlockTask block;
    RowCode type;
};

using EncodedLoop = void (*)(const EncodedTask &task);
using EncodedPreparation = void (*)(const EncodedTask &task, int64_t first_row, int64_t row_end);

constexpr int64_t kEncodedRows = 64;  ///< rows of activations that are rounded at once
constexpr int64_t kEncodedStep = 128; ///< elements that loops multiply by integers at once, at most

/// Returns the elements that share a scale of the weights, and one of activations in int8.
constexpr int64_t encoded_group(RowCode type) {
    return type == RowCode::kQ6K ? 16 : 32;
}

/// Bytes of a row of activations rounded to int8: steps of numbers with scales and sums of lanes,
/// of three bytes an element at most, then the numbers, scales and sums of groups in order.
static constexpr int64_t encoded_int8_bytes(RowCode type, int64_t depth) {
    const int64_t padded = block_round_up(depth, kEncodedStep);
    return 4 * padded + 2 * 4 * block_round_up(padded / encoded_group(type), kBlockLanes);
}

/// Decodes the first `depth` elements of a row.
void decode_row(RowCode type, const char *from, int64_t depth, float *to);

namespace portable {
void multiply_encoded(const EncodedTask &task);
void round_encoded(const EncodedTask &task, int64_t first_row, int64_t row_end);
void multiply_encoded_int8(const EncodedTask &task);
} // namespace portable
namespace avx2 {
void multiply_encoded(const EncodedTask &task);
void multiply_encoded_rows(const EncodedTask &task);
void round_encoded(const EncodedTask &task, int64_t first_row, int64_t row_end);
void multiply_encoded_int8(const EncodedTask &task);
} // namespace avx2
namespace avx512 {
void multiply_encoded(const EncodedTask &task);
void multiply_encoded_rows(const EncodedTask &task);
void round_encoded(const EncodedTask &task, int64_t first_row, int64_t row_end);
void multiply_encoded_int8(const EncodedTask &task);
} // namespace avx512
namespace vnni {
void round_encoded(const EncodedTask &task, int64_t first_row, int64_t row_end);
void multiply_encoded_int8(const EncodedTask &task);
} // namespace vnni

} // namespace tightship::kernels
