/// Packing from the floor up in O(n log n) typical time.
#pragma once

#include "tightship/packing/contained.hpp"
#include "tightship/packing/place.hpp"
#include "tightship/packing/rising.hpp"

namespace tightship::packing {

/// Tops of the placed buffers, as intervals of steps of one height, and the buffers still to place.
/// An interval with higher neighbours is a valley: placements elsewhere cannot change it. So
/// valleys are filled one by one, from left to right, each by the first buffer of the order that
/// fits into its width; a valley that no buffer fits into is raised to its lower neighbour.
class Skyline {
  public:
    explicit Skyline(const place::Buffers &buffers);

    /// Returns the offsets for an order, a permutation of [0, n).
    place::Offsets place(place::Order order);

  private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Interval {
        std::int64_t height;
        std::uint32_t start;
        std::uint32_t stop;
        std::uint32_t left;
        std::uint32_t right;
    };

    struct Steps {
        explicit Steps(const place::Buffers &buffers);
        Rows solid; // buffers that are not empty
        std::vector<std::uint32_t> start;
        std::vector<std::uint32_t> stop;
        std::uint32_t count = 0;
    };

    std::int64_t height(std::uint32_t interval) const;
    std::uint32_t valley(std::uint32_t from) const;
    std::uint32_t fill(std::uint32_t valley, std::uint32_t row, std::int64_t top);
    void raise(std::uint32_t valley);
    void join_left(std::uint32_t interval);
    void join_right(std::uint32_t interval);
    std::uint32_t make(const Interval &interval);

    const place::Buffers &buffers_;
    Steps steps_;
    Contained waiting_;
    std::vector<Interval> intervals_;
    std::vector<std::uint32_t> unused_;
};

} // namespace tightship::packing
