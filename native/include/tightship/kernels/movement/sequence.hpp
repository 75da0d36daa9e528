/// Kernels along the steps of sequences: reversal, and appending to a cache.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"
#include "tightship/kernels/row_type.hpp"

#include <memory>
#include <string>

namespace tightship::kernels {

/// Reversal of the first elements of each sequence; the others stay. Operands: data, lengths (one
/// int64 for each sequence), target. Each step of a sequence is `row_bytes` of adjacent bytes.
struct Sequences {
    std::string node; ///< named by errors
    int64_t count, steps, row_bytes;
    bool steps_first; ///< whether steps are the outer axis, rather than sequences
};
std::shared_ptr<const Kernel> reverse_sequences(const Sequences &sequences);

/// Update written into a cache from a step on, wrapping around if `is_circular`. Operands: past,
/// update, first steps (one int64 for each batch) if `has_firsts`, target, which may be the past.
/// An update of float32 is rounded to the cache's type (`narrow_rows`) if there is a `width`.
struct Append {
    std::string node; ///< named by errors
    int64_t batches, groups, steps, new_steps;
    int64_t row_bytes; ///< of a step in the update
    bool has_firsts, is_circular;
    Dims update_strides; ///< bytes between batches, groups and steps of the update
    RowType type = RowType::kFloat32;
    int64_t width = 0; ///< adjacent elements that have one scale, if the type has scales
};
std::shared_ptr<const Kernel> append(const Append &append);

} // namespace tightship::kernels
