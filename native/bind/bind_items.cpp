#include "bind.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <memory>

#include "tightship/packing/items.hpp"

namespace tightship::bind {
namespace {

namespace nb = nanobind;

using Rows = nb::ndarray<const std::int64_t, nb::shape<-1, 5>, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<const std::int64_t, nb::shape<4, -1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<const std::int64_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<nb::numpy, std::int64_t, nb::shape<-1>, nb::c_contig>;

static_assert(sizeof(packing::Rectangle) == 5 * sizeof(std::int64_t));

std::span<const packing::Rectangle> rectangles_of(const Rows &rows, std::size_t owners) {
    const std::span rectangles(reinterpret_cast<const packing::Rectangle *>(rows.data()),
                               rows.shape(0));
    for (const packing::Rectangle &rectangle : rectangles)
        if (rectangle.owner < 0 || static_cast<std::size_t>(rectangle.owner) >= owners)
            throw nb::index_error("a rectangle is of no item and no bank");
    return rectangles;
}

std::span<const std::int64_t> indices_of(const Values &values, std::size_t count) {
    if (values.shape(0) != count)
        throw nb::value_error("an order has another length than what it orders");
    for (std::size_t i = 0; i < count; ++i)
        if (values(i) < 0 || static_cast<std::size_t>(values(i)) >= count)
            throw nb::index_error("an order holds an index of nothing");
    return {values.data(), count};
}

Column to_numpy(std::vector<std::int64_t> values) {
    auto owned = std::make_unique<std::vector<std::int64_t>>(std::move(values));
    nb::capsule owner(owned.get(), [](void *data) noexcept {
        delete static_cast<std::vector<std::int64_t> *>(data);
    });
    std::vector<std::int64_t> *released = owned.release();
    return Column(released->data(), {released->size()}, owner);
}

std::pair<Column, Column> place_items(const Rows &rectangles, const Columns &columns,
                                      const Rows &forbidden, const Values &capacity,
                                      const Values &by_cost, const Values &order) {
    const std::size_t count = columns.shape(1);
    const std::size_t banks = capacity.shape(0);
    const auto row = [&](std::size_t index) {
        return std::span(columns.data() + index * count, count);
    };
    const packing::Items items{rectangles_of(rectangles, count), row(0), row(1), row(2), row(3)};
    const packing::Banks space{std::span(capacity.data(), banks), indices_of(by_cost, banks),
                               rectangles_of(forbidden, banks)};
    const auto checked = indices_of(order, count);
    packing::Places places;
    {
        nb::gil_scoped_release release;
        places = packing::first_fit(items, space, checked);
    }
    return {to_numpy(std::move(places.base)), to_numpy(std::move(places.bank))};
}

} // namespace

void items(nb::module_ &module) {
    module.def("place_items", place_items, nb::arg("rectangles"), nb::arg("columns"),
               nb::arg("forbidden"), nb::arg("capacity"), nb::arg("by_cost"), nb::arg("order"),
               "Base and bank of each item: the first bank by cost and the lowest base it fits.");
}

} // namespace tightship::bind
