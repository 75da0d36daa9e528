/// Kernels along the steps of sequences: reversed, appended to a cache, turned by position.
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

/// x, cosines, sines, positions (int64) if `position_count`, target, which may be x: float32
/// pairs turned by the angle of their position, those past `pairs` copied.
struct RotaryEmbedding {
    std::string node; ///< named by errors
    bool is_interleaved;
    int64_t pairs, row_length, x_step; ///< the last in bytes, along a row
    int64_t position_count;            ///< of rows of the cache; 0 where no positions are given
    Dims shape;                        ///< of what is around rows
    /// Byte strides: of x, of the target, and of positions, or of the cache where none are given.
    Dims source, target, angles;
};
std::shared_ptr<const Kernel> rotary_embedding(const RotaryEmbedding &embedding);

} // namespace tightship::kernels
