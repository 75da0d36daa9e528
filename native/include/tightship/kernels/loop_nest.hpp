/// Loop over the elements of operands of one shape and different strides.
#pragma once

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <array>
#include <cassert>
#include <cstdint>
#include <vector>

namespace tightship::kernels {

/// Loop that drops axes of length one and merges neighbours where all strides permit; the innermost
/// axis left is a row, the one around it a block of rows. Strides are in bytes; 0 repeats an
/// element.
template <size_t N> class LoopNest {
  public:
    using Offsets = std::array<int64_t, N>;

    /// Throws std::invalid_argument if a stride is missing or a number exceeds its limit.
    LoopNest(const Dims &shape, const std::array<Dims, N> &strides) {
        for (size_t operand = 0; operand < N; ++operand)
            reach_[operand] = reach_of(shape, strides[operand], 0);
        is_empty_ = std::find(shape.begin(), shape.end(), 0) != shape.end();
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
        take_innermost(row_length_, row_steps_);
        take_innermost(block_length_, block_steps_);
        assert(lengths_.size() <= kAxesMax);
        for (const int64_t length : lengths_)
            outer_count_ *= length;
    }

    /// Bytes from one element of a row to the next, by operand.
    const Offsets &row_steps() const { return row_steps_; }
    /// Bytes from one row of a block to the next, by operand.
    const Offsets &block_steps() const { return block_steps_; }

    int64_t row_length() const { return row_length_; }
    /// Returns whether all elements are one row.
    bool is_row() const { return outer_count_ == 1 && block_length_ == 1; }

    /// Returns the bytes that elements of `item_bytes` of an operand occupy.
    Reach reach(size_t operand, int64_t item_bytes) const {
        const Reach first = reach_[operand];
        return is_empty_ ? Reach{0, 0} : Reach{first.low, first.high + item_bytes};
    }

    /// Calls `body(offsets, rows, length)` for every part of a block: byte offsets of its first
    /// element by operand, its number of rows, and their number of elements. Threads share the
    /// parts; `cost` is the work of an element relative to a cheap one.
    template <class Body>
    void for_each_block(int threads, const Body &body, int64_t cost = 1) const {
        const Cut cut = cut_for(cost);
        parallel_for(threads, outer_count_ * cut.bands * cut.pieces, cut.grain,
                     [&](int64_t begin, int64_t end) { walk(cut, begin, end, body); });
    }

    /// Calls `body(offsets, length)` for every part of a row, as `for_each_block` does.
    template <class Body> void for_each_row(int threads, const Body &body, int64_t cost = 1) const {
        for_each_block(
            threads,
            [&](Offsets offsets, int64_t rows, int64_t length) {
                for (; rows > 0; --rows) {
                    body(offsets, length);
                    advance(offsets, block_steps_, 1);
                }
            },
            cost);
    }

  private:
    static constexpr int64_t kPart = 1 << 14;  ///< most elements of one call
    static constexpr int64_t kGrain = 1 << 14; ///< fewest elements for a further thread
    static constexpr size_t kAxesMax = 64;

    /// Division of blocks into bands of whole rows, or of rows into parts.
    struct Cut {
        int64_t piece, pieces, band, bands, grain;
    };

    bool merges(const Offsets &step, int64_t length) const {
        for (size_t operand = 0; operand < N; ++operand)
            if (steps_.back()[operand] != step[operand] * length)
                return false;
        return true;
    }

    void take_innermost(int64_t &length, Offsets &steps) {
        if (lengths_.empty())
            return;
        length = lengths_.back();
        steps = steps_.back();
        lengths_.pop_back();
        steps_.pop_back();
    }

    Cut cut_for(int64_t cost) const {
        const int64_t part = std::max<int64_t>(kPart / cost, 1);
        const int64_t piece = std::clamp<int64_t>(row_length_, 1, part);
        const int64_t band =
            std::clamp<int64_t>(part / piece, 1, std::max<int64_t>(block_length_, 1));
        const int64_t worth = std::max<int64_t>(kGrain / cost, 1) / (piece * band);
        return {piece, (row_length_ + piece - 1) / piece, band, (block_length_ + band - 1) / band,
                std::max<int64_t>(worth, 1)};
    }

    static void advance(Offsets &offsets, const Offsets &steps, int64_t count) {
        for (size_t operand = 0; operand < N; ++operand)
            offsets[operand] += steps[operand] * count;
    }

    template <class Body>
    void walk(const Cut &cut, int64_t begin, int64_t end, const Body &body) const {
        if (begin == end)
            return;
        std::array<int64_t, kAxesMax> places;
        int64_t piece = begin % cut.pieces;
        int64_t band = begin / cut.pieces % cut.bands;
        Offsets outer = start(begin / cut.pieces / cut.bands, places);
        for (int64_t index = begin;;) {
            const int64_t row = band * cut.band, first = piece * cut.piece;
            Offsets offsets = outer;
            advance(offsets, block_steps_, row);
            advance(offsets, row_steps_, first);
            body(offsets, std::min(cut.band, block_length_ - row),
                 std::min(cut.piece, row_length_ - first));
            if (++index == end)
                return;
            if (++piece < cut.pieces)
                continue;
            piece = 0;
            if (++band < cut.bands)
                continue;
            band = 0;
            next(outer, places);
        }
    }

    /// Returns the offsets of an element of the outer axes, and sets its position along each.
    Offsets start(int64_t index, std::array<int64_t, kAxesMax> &places) const {
        Offsets offsets{};
        for (size_t axis = lengths_.size(); axis-- > 0;) {
            places[axis] = index % lengths_[axis];
            index /= lengths_[axis];
            advance(offsets, steps_[axis], places[axis]);
        }
        return offsets;
    }

    void next(Offsets &offsets, std::array<int64_t, kAxesMax> &places) const {
        for (size_t axis = lengths_.size(); axis-- > 0;) {
            advance(offsets, steps_[axis], 1);
            if (++places[axis] < lengths_[axis])
                return;
            advance(offsets, steps_[axis], -lengths_[axis]);
            places[axis] = 0;
        }
    }

    Dims lengths_; ///< of the axes around a block
    std::vector<Offsets> steps_;
    int64_t outer_count_ = 1, block_length_ = 1, row_length_ = 1;
    Offsets block_steps_{}, row_steps_{};
    std::array<Reach, N> reach_; ///< of first bytes
    bool is_empty_ = false;
};

} // namespace tightship::kernels
