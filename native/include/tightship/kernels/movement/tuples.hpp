/// Tuples of indices, checked before anything is written.
#pragma once

#include "tightship/kernels/item.hpp"
#include "tightship/kernels/movement/indexed.hpp"

namespace tightship::kernels {

class Tuples {
  public:
    /// Throws std::invalid_argument unless indices have 4 or 8 bytes.
    explicit Tuples(const Indexing &indexing);

    /// Throws std::invalid_argument unless a walk reads only tuples that `check` checks.
    void require_checked(const Walk &walk) const;

    /// Returns the bytes that tuples may touch of the indexed data; `own_reach`, of their own
    /// operand.
    Reach data_reach(Reach walked, int64_t item_bytes) const;
    Reach own_reach() const;

    /// Throws KernelError if an index is outside its axis.
    void check(const char *tuples) const;

    /// Calls `body` with a function from the address of a tuple to an offset in the data.
    template <class Body> void with_offset(const Body &body) const {
        if (index_bytes_ == 4)
            with_offset_of<int32_t>(body);
        else
            with_offset_of<int64_t>(body);
    }

  private:
    template <class Index, class Body> void with_offset_of(const Body &body) const {
        if (coordinates_.size() == 1) {
            const Coordinate only = coordinates_.front();
            body([only](const char *tuple) { return offset<Index>(tuple, only); });
            return;
        }
        body([this](const char *tuple) {
            int64_t bytes = 0;
            for (const Coordinate &each : coordinates_)
                bytes += offset<Index>(tuple + each.index_step, each);
            return bytes;
        });
    }

    template <class Index> static int64_t offset(const char *from, const Coordinate &along) {
        int64_t index = load<Index>(from);
        index += index < 0 ? along.length : 0;
        if (along.block == 0)
            return index * along.data_step;
        return index / along.block * along.block_step + index % along.block * along.data_step;
    }

    template <class Index> void check_all(const char *tuples) const;

    std::string node_;
    int64_t index_bytes_;
    std::vector<Coordinate> coordinates_;
    Dims shape_, strides_;
    LoopNest<1> nest_;
};

} // namespace tightship::kernels
