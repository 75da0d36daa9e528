/// Kernels that read or write where an operand of indices says.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <string>

namespace tightship::kernels {

/// One index of a tuple: what it counts.
struct Coordinate {
    int64_t length;         ///< of the dimension; negative indices count from its end
    int64_t index_step;     ///< bytes from the tuple's first index to this one
    int64_t data_step;      ///< bytes from one element of the dimension to the next
    int64_t block = 0;      ///< elements after which `data_step` starts again; 0 for none
    int64_t block_step = 0; ///< bytes from one block to the next
};

/// Tuples of indices of 4 or 8 bytes, and what they point into.
struct Indexing {
    std::string node; ///< named by errors
    int64_t index_bytes;
    Dims shape;   ///< of the operand of tuples
    Dims strides; ///< in bytes
    std::vector<Coordinate> coordinates;
};

/// Byte strides of operands under one shape, 0 along indexed dimensions of the data and along
/// those of rows for the tuples.
struct Walk {
    Dims shape, data, tuples, other;
};

/// Data, indices, result: `walk.other` is the result's.
std::shared_ptr<const Kernel> gather(int64_t item_bytes, const Indexing &indexing,
                                     const Walk &walk);

/// The scattered data's own layout in, and in the result.
struct Whole {
    Dims shape, source, target;
};

/// Data, indices, updates, result, which may be the data's bytes: `walk.data` strides are the
/// result's, `walk.other` those of the updates. `how` is none, add, mul, max or min; where
/// tuples repeat under none, the last update stays. Null where elements of `dtype`, a number's
/// name, cannot be combined.
std::shared_ptr<const Kernel> scatter(int64_t item_bytes, const std::string &dtype,
                                      const std::string &how, const Indexing &indexing,
                                      const Walk &walk, const Whole &whole);

} // namespace tightship::kernels
