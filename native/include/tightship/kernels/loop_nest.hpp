/// One loop over the elements of several operands that share a shape but not their strides.
#pragma once

#include "tightship/parallel.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace tightship::kernels {

using Dims = std::vector<int64_t>;

/// Axes of length one are dropped and neighbours merged wherever every operand's strides allow;
/// the innermost that is left is a row. Strides are in bytes; 0 repeats an element.
template <size_t N> class LoopNest {
  public:
    using Offsets = std::array<int64_t, N>;

    LoopNest(const Dims &shape, const std::array<Dims, N> &strides) {
        for (size_t axis = 0; axis < shape.size(); ++axis) {
            if (shape[axis] == 1)
                continue;
            Offsets step;
            for (size_t operand = 0; operand < N; ++operand)
                step[operand] = strides[operand][axis];
            if (!lengths_.empty() && merges(step, shape[axis])) {
                lengths_.back() *= shape[axis];
                steps_.back() = step;
            } else {
                lengths_.push_back(shape[axis]);
                steps_.push_back(step);
            }
        }
        if (lengths_.empty()) {
            lengths_.push_back(1);
            steps_.push_back(Offsets{});
        }
        row_length_ = lengths_.back();
        row_steps_ = steps_.back();
        lengths_.pop_back();
        steps_.pop_back();
        for (const int64_t length : lengths_)
            row_count_ *= length;
    }

    /// Bytes from one element of a row to the next, by operand.
    const Offsets &row_steps() const { return row_steps_; }

    /// Calls `body(offsets, length)` for every piece of a row: byte offsets by operand of its
    /// first element, and how many it has. Pieces are shared out among threads.
    template <class Body> void for_each_row(int threads, const Body &body) const {
        const int64_t pieces = (row_length_ + kPiece - 1) / kPiece;
        const int64_t grain = std::max<int64_t>(kGrain / std::min(row_length_ + 1, kPiece), 1);
        parallel_for(threads, row_count_ * pieces, grain, [&](int64_t begin, int64_t end) {
            for (int64_t index = begin; index < end; ++index) {
                const int64_t first = index % pieces * kPiece;
                Offsets offsets = offsets_of(index / pieces);
                for (size_t operand = 0; operand < N; ++operand)
                    offsets[operand] += first * row_steps_[operand];
                body(offsets, std::min(kPiece, row_length_ - first));
            }
        });
    }

  private:
    static constexpr int64_t kPiece = 1 << 14; ///< elements of a row that one call takes at most
    static constexpr int64_t kGrain = 1 << 14; ///< elements that are worth a thread

    bool merges(const Offsets &step, int64_t length) const {
        for (size_t operand = 0; operand < N; ++operand)
            if (steps_.back()[operand] != step[operand] * length)
                return false;
        return true;
    }

    Offsets offsets_of(int64_t row) const {
        Offsets offsets{};
        for (size_t axis = lengths_.size(); axis-- > 0;) {
            const int64_t place = row % lengths_[axis];
            row /= lengths_[axis];
            for (size_t operand = 0; operand < N; ++operand)
                offsets[operand] += place * steps_[axis][operand];
        }
        return offsets;
    }

    Dims lengths_; ///< of the axes around a row
    std::vector<Offsets> steps_;
    int64_t row_count_ = 1, row_length_ = 0;
    Offsets row_steps_{};
};

} // namespace tightship::kernels
