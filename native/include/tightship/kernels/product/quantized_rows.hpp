/// Products of rows of bytes by constant weights of 8 bits, rounded to 8 bits again.
#pragma once

#include "tightship/kernel.hpp"

#include <cstdint>
#include <memory>

namespace tightship::kernels {

constexpr int64_t kQuantizedColumns = 64; ///< columns that are computed together
constexpr int64_t kQuantizedDepth = 4;    ///< products that are summed at once

/// Range that a number is clamped to.
struct QuantizedLimits {
    float low, high;
};

/// `clamp(round(sum * factor + term))` of each column; with an addend, the clamped number is
/// multiplied by `product_factor`, and `addend * addend_factor + shift` is added, rounded and
/// clamped again.
struct QuantizedRows {
    int64_t rows, depth, columns;
    QuantizedLimits result;
    bool adds;
    QuantizedLimits product; ///< of the number that is added
    float product_factor, addend_factor, shift;
    bool is_addend_signed;
};

/// Makes a product by weights. Operands: source, weights, factors, terms, [addend,] target.
///
/// The source is (rows, depth) of uint8, the weights (columns / 16, depth / 4, 16, 4) of int8,
/// factors and terms have a float for each column, addend and target are (rows, columns) of bytes.
/// The target may be the addend. Throws std::invalid_argument unless the columns are a multiple of
/// `kQuantizedColumns`, and the depth of `kQuantizedDepth`.
std::shared_ptr<const Kernel> quantized_rows(const QuantizedRows &shape);

} // namespace tightship::kernels
