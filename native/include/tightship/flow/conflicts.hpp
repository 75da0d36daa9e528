/// Conflicts between buffers when steps run as soon as they can: two buffers that may hold bytes at
/// the same time must not share memory.
#pragma once

#include "tightship/flow/ancestors.hpp"
#include "tightship/packing/place.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tightship::flow {

/// Steps that touch each of m buffers: those of buffer i are `step[stop[i - 1]..stop[i])`, rising.
/// A buffer is kept if it is read after all steps.
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

/// Order of buffers: one comes before another if every step that touches it has ended before any
/// step that touches the other begins.
class Order {
  public:
    Order(const Ancestors &ancestors, const Touches &touches);

    bool before(std::size_t a, std::size_t b) const;
    bool meet(std::size_t a, std::size_t b) const { return !before(a, b) && !before(b, a); }
    std::size_t count() const { return first_.size(); }

    /// Returns the steps of a buffer that none of its other steps precedes; `last` returns those
    /// that precede none of its other steps.
    std::span<const Step> first(std::size_t buffer) const { return first_[buffer]; }
    std::span<const Step> last(std::size_t buffer) const { return last_[buffer]; }

  private:
    const Ancestors &ancestors_;
    std::vector<std::vector<Step>> first_;
    std::vector<std::vector<Step>> last_;
    std::vector<bool> kept_;
};

/// Matrix of one bit for each pair of buffers: set if they may hold bytes at the same time.
class Conflicts {
  public:
    /// Finds the conflicts. If `group` is given, one group for each buffer, buffers of different
    /// groups conflict as well. Takes O(m * m) time and m * m / 8 bytes.
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

/// Places buffers in the given order, each in a gap between those placed before it. O(m * m).
place::Offsets place(const Conflicts &conflicts, const Sized &buffers, place::Order order, Gap gap);

/// Returns the pairs of steps of which the first must end before the second begins, so that buffers
/// which share bytes are not live at once; none for pairs of buffers that are ordered anyway. Of
/// two unordered buffers, the one that is touched first in the order of the steps comes first.
/// REQUIRES: buffers that share bytes have disjoint lifetimes when steps run one after another.
std::vector<std::pair<Step, Step>> implied(const Order &order, const Touches &touches,
                                           const Sized &buffers,
                                           std::span<const std::int64_t> offsets,
                                           const Ancestors &ancestors);

} // namespace tightship::flow
