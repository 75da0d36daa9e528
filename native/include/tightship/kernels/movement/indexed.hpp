/// Kernels that read or write at positions given by an operand of indices.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <string>

namespace tightship::kernels {

/// Element of an index tuple, and the axis of the data that it indexes.
struct Coordinate {
    int64_t length;         ///< of the axis; negative indices count from its end
    int64_t index_step;     ///< bytes from the tuple's first element to this one
    int64_t data_step;      ///< bytes from one element of the axis to the next
    int64_t block = 0;      ///< elements in a block, within which `data_step` holds; 0 for none
    int64_t block_step = 0; ///< bytes from one block to the next
};

/// Operand of tuples of indices of 4 or 8 bytes, and the axes that they index.
struct Indexing {
    std::string node; ///< named by errors
    int64_t index_bytes;
    Dims shape;   ///< of the operand of tuples
    Dims strides; ///< in bytes
    std::vector<Coordinate> coordinates;
};

/// Walked shape, and byte strides of operands in it: of the data, 0 where an index selects the
/// position; of the tuples, 0 along rows.
struct Walk {
    Dims shape, data, tuples, other;
};

/// Makes a gather. Operands: data, indices, result, whose strides are `walk.other`.
std::shared_ptr<const Kernel> gather(int64_t item_bytes, const Indexing &indexing,
                                     const Walk &walk);

/// Shape of scattered data, and its strides as an input and in the result.
struct Whole {
    Dims shape, source, target;
};

/// Makes a scatter; null if `how` cannot combine elements of `dtype`. Operands: data, indices,
/// updates, result, which may be the data's bytes; `walk.data` are strides of the result,
/// `walk.other` of the updates. `how` is none, add, mul, max or min; with none, the last update of
/// repeated tuples stays.
std::shared_ptr<const Kernel> scatter(int64_t item_bytes, const std::string &dtype,
                                      const std::string &how, const Indexing &indexing,
                                      const Walk &walk, const Whole &whole);

} // namespace tightship::kernels
