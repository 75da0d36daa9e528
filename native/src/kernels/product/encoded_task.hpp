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

/// Decodes the first `depth` elements of a row.
void decode_row(RowCode type, const char *from, int64_t depth, float *to);

namespace portable {
void multiply_encoded(const EncodedTask &task);
} // namespace portable
namespace avx2 {
void multiply_encoded(const EncodedTask &task);
void multiply_encoded_rows(const EncodedTask &task);
} // namespace avx2
namespace avx512 {
void multiply_encoded(const EncodedTask &task);
void multiply_encoded_rows(const EncodedTask &task);
} // namespace avx512

} // namespace tightship::kernels
