/// Which buffers may hold bytes at the same time when steps run as soon as they can.
#pragma once

#include "tightship/flow/ancestors.hpp"
#include "tightship/packing/place.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tightship::flow {

/// The steps that touch each of m buffers: those of buffer i are `step[stop[i - 1]..stop[i])`,
/// rising. A buffer is kept if it is read after all steps.
struct Touches {
    std::span<const std::int64_t> step;
    std::span<const std::int64_t> stop;
    std::span<const std::int64_t> kept; // 0 or 1

    std::size_t count() const { return stop.size(); }
    std::span<const std::int64_t> of(std::size_t buffer) const {
        const std::int64_t begin = buffer == 0 ? 0 : stop[buffer - 1];
        return step.subspan(static_cast<std::size_t>(begin),
                            static_cast<std::size_t>(stop[buffer] - begin));
    }
};

/// A buffer comes before another if every step that touches it has ended before any that touches
/// the other begins.
class Order {
  public:
    Order(const Ancestors &ancestors, const Touches &touches);

    bool before(std::size_t a, std::size_t b) const;
    bool meet(std::size_t a, std::size_t b) const { return !before(a, b) && !before(b, a); }
    std::size_t count() const { return first_.size(); }

    /// Steps that none of a buffer's others come before, and that come before none of them.
    std::span<const Step> first(std::size_t buffer) const { return first_[buffer]; }
    std::span<const Step> last(std::size_t buffer) const { return last_[buffer]; }

  private:
    const Ancestors &ancestors_;
    std::vector<std::vector<Step>> first_;
    std::vector<std::vector<Step>> last_;
    std::vector<bool> kept_;
};

/// A bit for each pair of buffers: whether they may hold bytes at the same time.
class Conflicts {
  public:
    /// Buffers of different groups meet as well, where there are groups, one for each buffer.
    /// O(m * m), and m * m / 8 bytes.
    explicit Conflicts(const Order &order, std::span<const std::int64_t> group = {});

    bool meet(std::size_t a, std::size_t b) const {
        return bits_[a * words_ + b / 64] >> (b % 64) & 1;
    }
    void add(std::size_t a, std::size_t b) {
        bits_[a * words_ + b / 64] |= std::uint64_t{1} << (b % 64);
        bits_[b * words_ + a / 64] |= std::uint64_t{1} << (a % 64);
    }
    std::size_t count() const { return count_; }

  private:
    std::size_t count_;
    std::size_t words_;
    std::vector<std::uint64_t> bits_;
};

struct Sized {
    std::span<const std::int64_t> size;
    std::span<const std::int64_t> alignment;
};

enum class Gap { lowest, tightest };

/// Buffers in the given order, each in a gap that those placed before leave it. O(m * m).
place::Offsets place(const Conflicts &conflicts, const Sized &buffers, place::Order order, Gap gap);

/// Pairs of steps of which the first must end before the second begins, so that buffers which share
/// bytes do not meet; nothing for pairs of buffers that are ordered anyway. Of two that are not,
/// the one that is touched first in the order of the steps comes first.
/// REQUIRES: buffers that share bytes are apart where steps run one after another.
std::vector<std::pair<Step, Step>> implied(const Order &order, const Touches &touches,
                                           const Sized &buffers,
                                           std::span<const std::int64_t> offsets,
                                           const Ancestors &ancestors);

} // namespace tightship::flow
