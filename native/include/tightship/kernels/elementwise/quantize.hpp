/// Kernels between real numbers and their quantized form: x = (q - zero point) * scale.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace tightship::kernels {

/// Byte strides of the tensor read, of the scales, of the zero points and of the tensor written,
/// all under one shape.
using QuantizeStrides = std::array<Dims, 4>;

/// Makes a QuantizeLinear. Operands: x (float32), scale (float32)[, zero point], y, rounded to even
/// and saturated. `dtype` is y's and the zero point's: int8, uint8, int16 or uint16; throws
/// std::invalid_argument for others.
std::shared_ptr<const Kernel> quantize(const std::string &dtype, const Dims &shape,
                                       const QuantizeStrides &strides, bool has_zero);

/// Makes a DequantizeLinear. Operands: x, scale (float32)[, zero point], y (float32). `dtype` is
/// x's and the zero point's: those of `quantize`, or int32.
std::shared_ptr<const Kernel> dequantize(const std::string &dtype, const Dims &shape,
                                         const QuantizeStrides &strides, bool has_zero);

/// Makes a DynamicQuantizeLinear of `count` elements. Operands: x (float32), y (uint8), scale
/// (float32), zero point (uint8), scratch; the scale covers x's range, extended to include 0.
std::shared_ptr<const Kernel> dynamic_quantize(int64_t count);

} // namespace tightship::kernels
