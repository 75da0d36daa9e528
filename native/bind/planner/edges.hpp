/// Rows of numbers and edges from Python, checked.
#pragma once

#include "columns.hpp"

#include "tightship/flow/ancestors.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace tightship::bind {

using EdgeRows = nanobind::ndarray<const std::int64_t, nanobind::shape<2, -1>, nanobind::c_contig,
                                   nanobind::device::cpu>;

inline std::span<const std::int64_t> span_of(const Row &row) {
    return {row.data(), row.shape(0)};
}

/// Throws IndexError, which begins with `what`, unless all numbers are in [0, count).
inline void check_range(std::span<const std::int64_t> numbers, std::size_t count,
                        const char *what) {
    for (const std::int64_t number : numbers)
        if (number < 0 || static_cast<std::size_t>(number) >= count)
            throw nanobind::index_error((std::string(what) + ": " + std::to_string(number) +
                                         " is not in [0, " + std::to_string(count) + ")")
                                            .c_str());
}

inline void check_length(const Row &row, std::size_t count, const char *what) {
    if (row.shape(0) != count)
        throw nanobind::value_error(what);
}

inline flow::Edges edges_of(const EdgeRows &rows, std::size_t steps) {
    const std::size_t count = rows.shape(1);
    const flow::Edges edges{{rows.data(), count}, {rows.data() + count, count}};
    check_range(edges.to, steps, "an edge ends at an unknown step");
    for (std::size_t i = 0; i < count; ++i)
        if (edges.from[i] < 0 || edges.from[i] >= edges.to[i])
            throw nanobind::value_error("an edge does not lead to a later step");
    return edges;
}

} // namespace tightship::bind
