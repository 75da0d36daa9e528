/// Rounding of float32 rows to the types of caches.
#pragma once

#include "tightship/kernels/row_type.hpp"

#include <string_view>

namespace tightship::kernels {

/// Finds a type by its NumPy name. Throws std::invalid_argument if rows cannot be stored in it.
RowType row_type(std::string_view name);

/// Stores `count` adjacent rows of `width` elements, rounded to nearest, ties to even.
///
/// An int8 row has the scale max|x| / 127, and q = x / scale within [-127, 127]; both quotients are
/// those of float32. A scale of zero makes zeros. A row with an infinity or a NaN gets a scale of
/// NaN, and so is NaN when it is read.
void narrow_rows(RowType type, int64_t width, const float *from, char *to, int64_t count);

} // namespace tightship::kernels
