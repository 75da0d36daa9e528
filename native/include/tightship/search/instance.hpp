/// Problem in the form that the search uses: sizes in units, steps as sections, buffers in order of
/// start.
///
///     steps      0   1   2   3   4   5   6
///     a          |-------|
///     b              |---------------|
///     c                      |-------|
///     sections       0           1
///
/// A section is a largest set of buffers that are live together; its buffers must be stacked. Any
/// buffers that are live together share a section.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tightship/packing/place.hpp"

namespace tightship::search {

/// Fixed offsets: an offset, or `kFree`, for each buffer; or nothing, if all are free.
using Pins = std::span<const std::int64_t>;
constexpr std::int64_t kFree = -1;

/// Sections of buffers, and the buffers in the order of their first section.
struct Sections {
    int count = 0;
    std::vector<std::int64_t> buffer; // index in the problem
    std::vector<int> begin, end;      // of each buffer: sections [begin, end)
};

/// Returns the sections of the buffers that are not empty. O(n log n).
Sections sections_of(const place::Buffers &buffers);

/// Sizes divided by their greatest common divisor, as far as alignments allow.
struct Units {
    std::int64_t bytes = 1;              // of one unit
    std::vector<std::int64_t> size;      // of each buffer of `Sections`, in units
    std::vector<std::int64_t> alignment; // in units, 1 if any offset is aligned
    std::int64_t total = 0;              // of sizes and padding
};

Units units_of(const place::Buffers &buffers, const Sections &sections, Pins pins);

/// Buffers whose sections are connected. Unit is int32_t if all sums fit, else int64_t.
template <class Unit> struct Instance {
    Unit capacity;
    bool aligned = false; // true if an alignment is above 1
    std::vector<Unit> size, alignment;
    std::vector<Unit> pin;              // of each buffer: its offset, or `kFree`
    std::vector<int> begin, end;        // of each buffer: sections [begin, end)
    std::vector<int> starts;            // of each section: its first buffer; one more at the end
    std::vector<int> members_begin;     // of each section: its first member; one more at the end
    std::vector<int> members;           // buffers of each section, rising
    std::vector<std::int64_t> buffer;   // index in the problem
    std::vector<std::int64_t> lifetime; // in steps

    int count() const { return static_cast<int>(size.size()); }
    /// Returns the pairs of buffers that a decision visits, roughly.
    std::int64_t pairs_a_node() const;

    int sections() const { return static_cast<int>(starts.size()) - 1; }
    std::span<const int> members_of(int section) const {
        return std::span(members).subspan(members_begin[section],
                                          members_begin[section + 1] - members_begin[section]);
    }
};

/// Returns the instance of buffers [from, to) of `sections`, which share no section with any other.
template <class Unit>
Instance<Unit> instance_of(const place::Buffers &buffers, const Sections &sections,
                           const Units &units, Pins pins, std::int64_t capacity, int from, int to);

} // namespace tightship::search
