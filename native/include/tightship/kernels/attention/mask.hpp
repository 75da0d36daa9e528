/// What stands between the scores of attention and their softmax.
#pragma once

namespace tightship::kernels {

/// Numbers to add, or one byte for each score that says whether it is kept, or hidden.
enum class Mask { kNone, kAdded, kKept, kHidden };

} // namespace tightship::kernels
