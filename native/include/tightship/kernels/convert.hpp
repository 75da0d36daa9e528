/// Conversion between element types, as ONNX's Cast defines it.
#pragma once

#include "tightship/kernels/element_type.hpp"

#include <cstdint>

namespace tightship::kernels {

/// Converts `length` dense elements. Floats are truncated to integers (one out of range becomes the
/// lowest integer of 32 or 64 bits, then its low bits); bool is `x != 0`.
using Convert = void (*)(ElementType from, const char *source, char *target, int64_t length);

/// Returns the conversion to a type.
Convert conversion_to(ElementType to);

/// Copies `length` elements of 1, 2, 4 or 8 bytes, from `from_step` bytes apart to `to_step`.
void spread(int64_t item_bytes, const char *from, int64_t from_step, char *to, int64_t to_step,
            int64_t length);

} // namespace tightship::kernels
