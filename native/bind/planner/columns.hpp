/// Buffers from Python as columns, and columns back.
#pragma once

#include "tightship/packing/place.hpp"

#include <memory>
#include <nanobind/ndarray.h>
#include <utility>
#include <vector>

namespace tightship::bind {

using Columns = nanobind::ndarray<const std::int64_t, nanobind::shape<4, -1>, nanobind::c_contig,
                                  nanobind::device::cpu>;
using Row = nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig,
                              nanobind::device::cpu>;
using Result =
    nanobind::ndarray<nanobind::numpy, std::int64_t, nanobind::shape<-1>, nanobind::c_contig>;

inline place::Buffers buffers_of(const Columns &columns) {
    const std::size_t count = columns.shape(1);
    const auto row = [&](std::size_t index) {
        return std::span(columns.data() + index * count, count);
    };
    return {row(0), row(1), row(2), row(3)};
}

inline Result to_numpy(std::vector<std::int64_t> values) {
    auto owned = std::make_unique<std::vector<std::int64_t>>(std::move(values));
    nanobind::capsule owner(owned.get(), [](void *data) noexcept {
        delete static_cast<std::vector<std::int64_t> *>(data);
    });
    std::vector<std::int64_t> *released = owned.release();
    return Result(released->data(), {released->size()}, owner);
}

} // namespace tightship::bind
