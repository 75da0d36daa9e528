/// Placement of buffers in an arena: the hot loops of the planner.
///
/// A buffer is a rectangle: [start, stop) in steps, [offset, offset + size) in bytes. Two that
/// overlap in steps must not overlap in bytes; an empty buffer is at offset 0. Every function is
/// deterministic and breaks ties by buffer index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tightship::place {

/// Columns of n buffers. REQUIRES: as checked by `tightship.planner.problem.Problem`.
struct Buffers {
    std::span<const std::int64_t> size;      // bytes, >= 0
    std::span<const std::int64_t> start;     // first step
    std::span<const std::int64_t> stop;      // first step after, > start
    std::span<const std::int64_t> alignment; // bytes, a power of two

    std::size_t count() const { return size.size(); }
    bool meet(std::size_t a, std::size_t b) const {
        return start[a] < stop[b] && start[b] < stop[a];
    }
};

using Offsets = std::vector<std::int64_t>;
using Order = std::span<const std::int64_t>; // a permutation of [0, n)

/// Returns the smallest multiple of `alignment`, a power of two, that is not below `bytes`.
inline std::int64_t align_up(std::int64_t bytes, std::int64_t alignment) {
    return (bytes + alignment - 1) & -alignment;
}

/// Returns the largest offset + size; 0 for no buffers.
std::int64_t peak(const Buffers &buffers, std::span<const std::int64_t> offsets);

/// Returns a number of bytes below which no placement exists: the most live bytes over the steps,
/// with sizes rounded up to the smallest alignment of all, less the padding that may end up at the
/// top. Close to linear in n.
std::int64_t lower_bound(const Buffers &buffers);

/// Places buffers in the given order, each at the lowest free offset. O(n k) for k placed before.
Offsets first_fit(const Buffers &buffers, Order order);

/// Places buffers in the given order, each on top of those before it that it meets. O(n log n).
Offsets stacked(const Buffers &buffers, Order order);

/// Places buffers in the given order, each in the tightest gap that holds it, else above all. O(n
/// k).
Offsets best_gap(const Buffers &buffers, Order order);

/// Places buffers as an allocator does that meets them in step order: each goes into the smallest
/// free range below the high-water mark, else raises the mark; freed ranges coalesce. O(n log k)
/// for k live.
Offsets best_fit(const Buffers &buffers);

/// Recycles whole blocks, as a reference counter returns them: a new buffer takes the smallest free
/// block of its size or more, else the largest smaller one, which grows, if within a factor of
/// `match_range`, else a new block; a `match_range` of 0 recycles nothing. Blocks are stacked in
/// the order in which they were made. O(n log n).
Offsets shared_objects(const Buffers &buffers, std::int64_t match_range);

/// Places, again and again, the buffer that can lie lowest on those placed so far, the first of the
/// order among equals; this choice ignores alignment. Nothing is put below a buffer already placed.
/// O(n log n) if lifetimes nest or are short, O(n sqrt n) at worst.
Offsets lowest_first(const Buffers &buffers, Order order);

/// Returns the smallest of `rounds` placements by `lowest_first`. After each, every buffer that
/// ends above `target` moves halfway to the front of the order. Ends early at a peak of `target` or
/// less, or when the order no longer changes. REQUIRES: rounds > 0.
Offsets promote(const Buffers &buffers, Order order, std::int64_t target, std::int64_t rounds);

} // namespace tightship::place
