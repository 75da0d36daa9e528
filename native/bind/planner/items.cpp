#include "bind.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "columns.hpp"
#include "gil.hpp"
#include "tightship/packing/items.hpp"
#include "tightship/search/fit_items.hpp"

namespace tightship::bind {
namespace {

namespace nb = nanobind;

using Rows = nb::ndarray<const std::int64_t, nb::shape<-1, 5>, nb::c_contig, nb::device::cpu>;
using ItemColumns =
    nb::ndarray<const std::int64_t, nb::shape<6, -1>, nb::c_contig, nb::device::cpu>;
using BankColumns =
    nb::ndarray<const std::int64_t, nb::shape<2, -1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<const std::int64_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;

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

std::pair<Result, Result> place_items(const Rows &rectangles, const ItemColumns &columns,
                                      const Rows &forbidden, const Values &capacity,
                                      const Values &by_cost, const Values &order) {
    const std::size_t count = columns.shape(1);
    const std::size_t banks = capacity.shape(0);
    const auto row = [&](std::size_t index) {
        return std::span(columns.data() + index * count, count);
    };
    const packing::Items items{
        rectangles_of(rectangles, count), row(0), row(1), row(2), row(3), row(4)};
    const packing::Banks space{std::span(capacity.data(), banks), indices_of(by_cost, banks),
                               rectangles_of(forbidden, banks)};
    const auto checked = indices_of(order, count);
    packing::Places places;
    {
        const GilReleased release;
        places = packing::first_fit(items, space, checked);
    }
    return {to_numpy(std::move(places.base)), to_numpy(std::move(places.bank))};
}

/// Limits: cost above the cheapest bank's, the sum of peaks, and the effort.
using Within = std::tuple<std::int64_t, std::int64_t, std::int64_t>;

search::ItemAnswer search_items(const Rows &rectangles, const ItemColumns &columns,
                                const Rows &forbidden, const BankColumns &bank_columns,
                                const Within &within, int threads, const StopFlag *stop) {
    const std::size_t count = columns.shape(1);
    const std::size_t bank_count = bank_columns.shape(1);
    const auto row = [&](std::size_t index) {
        return std::span(columns.data() + index * count, count);
    };
    const auto bank_row = [&](std::size_t index) {
        return std::span(bank_columns.data() + index * bank_count, bank_count);
    };
    std::vector<std::int64_t> by_cost(bank_count);
    std::iota(by_cost.begin(), by_cost.end(), 0);
    std::ranges::stable_sort(by_cost, {}, [&](std::int64_t bank) { return bank_row(1)[bank]; });
    const packing::Items items{
        rectangles_of(rectangles, count), row(0), row(1), row(2), row(3), row(4)};
    const packing::Banks banks{bank_row(0), by_cost, rectangles_of(forbidden, bank_count)};
    const auto &[cost, peak, effort] = within;
    const GilReleased release;
    return search::fit_items(items, banks, {bank_row(1), row(5)}, {cost, peak},
                             {effort, threads, stop});
}

} // namespace

void items(nb::module_ &module) {
    nb::class_<search::ItemAnswer>(module, "ItemFit", "Result of the exact search for items.")
        .def_ro("found", &search::ItemAnswer::found)
        .def_prop_ro(
            "banks", [](const search::ItemAnswer &answer) { return to_numpy(answer.banks); },
            nb::rv_policy::automatic);
    module.def("search_items", search_items, nb::arg("rectangles"), nb::arg("columns"),
               nb::arg("forbidden"), nb::arg("bank_columns"), nb::arg("within"), nb::arg("threads"),
               nb::arg("stop").none(),
               "Search banks and bases for items, within limits on cost, peak and effort.");
    module.def("place_items", place_items, nb::arg("rectangles"), nb::arg("columns"),
               nb::arg("forbidden"), nb::arg("capacity"), nb::arg("by_cost"), nb::arg("order"),
               "Return base and bank of each item: the first bank by cost, and the lowest base, "
               "that it fits.");
}

} // namespace tightship::bind
