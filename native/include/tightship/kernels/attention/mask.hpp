/// Masks that apply to the scores of attention before their softmax.
#pragma once

namespace tightship::kernels {

/// Kind of a mask: numbers to add, or one byte per score, true if it is kept, or hidden.
enum class Mask { kNone, kAdded, kKept, kHidden };

} // namespace tightship::kernels
