/// Indices of a gather's rows.
#pragma once

#include "tightship/kernels/item.hpp"
#include "tightship/kernels/product/block_product.hpp"
#include "tightship/kernels/reach.hpp"

namespace tightship::kernels {

/// Indices in memory; a negative one counts from the end.
struct RowIndices {
    const BlockGatherShape &shape;
    const char *data;

    /// Returns an index, to which a negative one's row count is added.
    int64_t at(int64_t place) const {
        const char *from = data + place * shape.index_bytes;
        const int64_t index = shape.index_bytes == 4 ? load<int32_t>(from) : load<int64_t>(from);
        return index < 0 ? index + shape.rows : index;
    }

    /// Throws KernelError if an index selects no row.
    void check() const {
        for (int64_t place = 0; place < shape.count; ++place) {
            const int64_t row = at(place);
            if (row >= 0 && row < shape.rows)
                continue;
            throw KernelError("Node `" + shape.node + "` selects row " +
                              std::to_string(row < 0 ? row - shape.rows : row) + " of " +
                              std::to_string(shape.rows) + "; indices must be in [" +
                              std::to_string(-shape.rows) + ", " + std::to_string(shape.rows - 1) +
                              "].");
        }
    }
};

inline void require_gather(const BlockGatherShape &shape) {
    require(shape.index_bytes == 4 || shape.index_bytes == 8,
            "a kernel has indices of another size");
    require(shape.count >= 0 && shape.rows > 0 && shape.depth > 0, "a kernel gathers nothing");
    require(shape.target_row % static_cast<int64_t>(sizeof(float)) == 0,
            "a kernel gathers between elements");
}

} // namespace tightship::kernels
