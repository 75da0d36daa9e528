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
constexpr int64_t kEncodedPanelRows = 32;    ///< at least, for which panels of integers pay
constexpr int64_t kEncodedPanelDepth = 1024; ///< elements of a panel of integers
/// Bytes of a panel of 16 columns: integers, scales and least numbers.
constexpr int64_t kEncodedPanel = 16 * (kEncodedPanelDepth + 2 * 4 * kEncodedPanelDepth / 16);

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

/// Bytes of a row of activations rounded to int8 for panels: the numbers, then scales and sums of
/// groups. No more than `encoded_int8_bytes`.
static constexpr int64_t encoded_panel_bytes(RowCode type, int64_t depth) {
    const int64_t padded = block_round_up(depth, kEncodedStep);
    return padded + 2 * 4 * block_round_up(padded / encoded_group(type), kBlockLanes);
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
void round_encoded_panels(const EncodedTask &task, int64_t first_row, int64_t row_end);
void multiply_encoded_panels(const EncodedTask &task);
} // namespace vnni

} // namespace tightship::kernels
