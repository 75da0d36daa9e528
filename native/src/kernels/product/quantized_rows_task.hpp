/// Arguments of the loops of rounded products of rows of bytes: plain data, because the loops are
/// compiled once for each instruction set and must share no inline function with other code.
#pragma once

#include "tightship/kernels/product/quantized_rows.hpp"

namespace tightship::kernels {

struct QuantizedRowsTask {
    const QuantizedRows *shape;
    const uint8_t *source;
    const int8_t *weights;
    const float *factors, *terms;
    const uint8_t *addend;
    uint8_t *target;
};

/// Computes rows [begin, end) of `kQuantizedColumns` columns from `column` on.
using QuantizedRowsLoop = void (*)(const QuantizedRowsTask &task, int64_t column, int64_t begin,
                                   int64_t end);

namespace vnni {
void multiply_quantized_rows(const QuantizedRowsTask &task, int64_t column, int64_t begin,
                             int64_t end);
}

} // namespace tightship::kernels
