/// Kernels along the steps of sequences: reversed, appended to a cache.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <string>

namespace tightship::kernels {

/// Data, lengths (one int64 for each sequence), target: the first elements of each sequence
/// reversed, the others kept. `row_bytes` lie together for each step of each sequence.
struct Sequences {
    std::string node; ///< named by errors
    int64_t count, steps, row_bytes;
    bool steps_first; ///< steps around sequences rather than within them
};
std::shared_ptr<const Kernel> reverse_sequences(const Sequences &sequences);

/// Past, update, first steps (one int64 for each batch) if `has_firsts`, target, which may be
/// the past: updates written from a step on, past the end at the beginning if `is_circular`.
struct Append {
    std::string node; ///< named by errors
    int64_t batches, groups, steps, new_steps, row_bytes;
    bool has_firsts, is_circular;
};
std::shared_ptr<const Kernel> append(const Append &append);

} // namespace tightship::kernels
