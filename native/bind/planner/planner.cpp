#include "bind.hpp"
#include "columns.hpp"
#include "gil.hpp"

#include "tightship/packing/place.hpp"

namespace tightship::bind {
namespace {

namespace nb = nanobind;

using Indices = nb::ndarray<const std::int64_t, nb::shape<-1>, nb::c_contig, nb::device::cpu>;

place::Order order_of(const Columns &columns, const Indices &order) {
    const std::size_t count = columns.shape(1);
    if (order.shape(0) != count)
        throw nb::value_error("order has another length than the columns");
    for (std::size_t i = 0; i < count; ++i)
        if (order(i) < 0 || static_cast<std::size_t>(order(i)) >= count)
            throw nb::index_error("order holds an index of no buffer");
    return {order.data(), count};
}

/// Runs a placement without the GIL.
template <typename Place> Result placed(Place place) {
    place::Offsets offsets;
    {
        const GilReleased release;
        offsets = place();
    }
    return to_numpy(std::move(offsets));
}

} // namespace

void planner(nb::module_ &module) {
    module.def(
        "lower_bound",
        [](const Columns &columns) { return place::lower_bound(buffers_of(columns)); },
        nb::arg("columns"), "Return a lower bound of bytes for any placement of the buffers.");
    module.def(
        "place_first_fit",
        [](const Columns &columns, const Indices &order) {
            const place::Order checked = order_of(columns, order);
            return placed([&] { return place::first_fit(buffers_of(columns), checked); });
        },
        nb::arg("columns"), nb::arg("order"), "Place each buffer, in order, as low as it fits.");
    module.def(
        "place_stacked",
        [](const Columns &columns, const Indices &order) {
            const place::Order checked = order_of(columns, order);
            return placed([&] { return place::stacked(buffers_of(columns), checked); });
        },
        nb::arg("columns"), nb::arg("order"), "Place each buffer on top of those before it.");
    module.def(
        "place_best_gap",
        [](const Columns &columns, const Indices &order) {
            const place::Order checked = order_of(columns, order);
            return placed([&] { return place::best_gap(buffers_of(columns), checked); });
        },
        nb::arg("columns"), nb::arg("order"), "Place each buffer in its tightest gap.");
    module.def(
        "place_best_fit",
        [](const Columns &columns) {
            return placed([&] { return place::best_fit(buffers_of(columns)); });
        },
        nb::arg("columns"), "Place buffers as a best-fit allocator does, step after step.");
    module.def(
        "place_shared_objects",
        [](const Columns &columns, std::int64_t match_range) {
            if (match_range < 0)
                throw nb::value_error("match_range is negative");
            return placed([&] { return place::shared_objects(buffers_of(columns), match_range); });
        },
        nb::arg("columns"), nb::arg("match_range"),
        "Place buffers in whole blocks, which are reused and stacked.");
    module.def(
        "place_lowest_first",
        [](const Columns &columns, const Indices &order) {
            const place::Order checked = order_of(columns, order);
            return placed([&] { return place::lowest_first(buffers_of(columns), checked); });
        },
        nb::arg("columns"), nb::arg("order"), "Place next the buffer that fits lowest.");
    module.def(
        "place_promote",
        [](const Columns &columns, const Indices &order, std::int64_t target, std::int64_t rounds) {
            const place::Order checked = order_of(columns, order);
            if (rounds < 1)
                throw nb::value_error("rounds is below 1");
            return placed(
                [&] { return place::promote(buffers_of(columns), checked, target, rounds); });
        },
        nb::arg("columns"), nb::arg("order"), nb::arg("target"), nb::arg("rounds"),
        "Place in rounds, each with the buffers that ended above the target moved forward.");
}

} // namespace tightship::bind
