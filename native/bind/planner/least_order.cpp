#include "bind.hpp"
#include "edges.hpp"
#include "gil.hpp"

#include "tightship/flow/least_order.hpp"
#include "tightship/flow/min_cut.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

namespace tightship::bind {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

/// Columns of a program's traffic, checked.
struct StepTraffic {
    std::vector<std::int64_t> size, kept, touch_stop, touch, scratch, over_stop, over_new, over_old;
    flow::Traffic traffic;

    StepTraffic(const std::pair<Row, Row> &cells, const std::pair<Row, Row> &touched,
                const Row &scratch, const std::tuple<Row, Row, Row> &over)
        : size(copied(cells.first)), kept(copied(cells.second)), touch_stop(copied(touched.first)),
          touch(copied(touched.second)), scratch(copied(scratch)),
          over_stop(copied(std::get<0>(over))), over_new(copied(std::get<1>(over))),
          over_old(copied(std::get<2>(over))),
          traffic{size, kept, touch_stop, touch, this->scratch, over_stop, over_new, over_old} {
        check_range(touch, size.size(), "a step touches an unknown cell");
        check_range(over_new, size.size(), "a pair names an unknown cell");
        check_range(over_old, size.size(), "a pair names an unknown cell");
        check_stops(touch_stop, touch.size());
        check_stops(over_stop, over_new.size());
        if (kept.size() != size.size() || this->scratch.size() != touch_stop.size() ||
            over_stop.size() != touch_stop.size() || over_old.size() != over_new.size())
            throw nb::value_error("columns of traffic have different lengths");
    }

    StepTraffic(const StepTraffic &) = delete; // the columns are pointed into
    StepTraffic &operator=(const StepTraffic &) = delete;

    static std::vector<std::int64_t> copied(const Row &row) {
        return {row.data(), row.data() + row.shape(0)};
    }

    static void check_stops(std::span<const std::int64_t> stops, std::size_t count) {
        std::int64_t last = 0;
        for (const std::int64_t stop : stops) {
            if (stop < last)
                throw nb::value_error("stops of steps fall");
            last = stop;
        }
        if (static_cast<std::size_t>(last) != count)
            throw nb::value_error("stops of steps end elsewhere than what they divide");
    }
};

std::tuple<Result, std::int64_t, bool> found_order(const StepTraffic &self, const EdgeRows &edges,
                                                   std::int64_t effort) {
    const flow::Edges checked = edges_of(edges, self.traffic.steps());
    flow::LeastOrder found;
    {
        const GilReleased release;
        found = flow::least_order(self.traffic, checked, effort);
    }
    return {to_numpy(std::move(found.order)), found.peak, found.is_least};
}

Result reached_side(std::size_t nodes, const EdgeRows &rows, const Row &capacity,
                    std::size_t source, std::size_t sink) {
    const std::size_t count = rows.shape(1);
    const flow::Edges edges{{rows.data(), count}, {rows.data() + count, count}};
    check_range(edges.from, nodes, "an edge starts at an unknown node");
    check_range(edges.to, nodes, "an edge ends at an unknown node");
    check_length(capacity, count, "capacities have another length than the edges");
    if (source >= nodes || sink >= nodes || source == sink)
        throw nb::value_error("source and sink are not two different nodes of the network");
    for (const std::int64_t each : span_of(capacity))
        if (each < 0)
            throw nb::value_error("a capacity is below 0");
    std::vector<std::int64_t> found;
    {
        const GilReleased release;
        found = flow::min_cut(nodes, edges, span_of(capacity), source, sink);
    }
    return to_numpy(std::move(found));
}

} // namespace

void least_order(nb::module_ &module) {
    nb::class_<StepTraffic>(module, "StepTraffic",
                            "Bytes that steps read, write and need as scratch.")
        .def(nb::init<const std::pair<Row, Row> &, const std::pair<Row, Row> &, const Row &,
                      const std::tuple<Row, Row, Row> &>(),
             "cells"_a, "touched"_a, "scratch"_a, "over"_a)
        .def(
            "peak",
            [](const StepTraffic &self, const Row &order) {
                check_range(span_of(order), self.traffic.steps(), "order names an unknown step");
                return flow::peak_of(self.traffic, span_of(order));
            },
            "order"_a, "Return the largest load of any step if steps run in this order.")
        .def("least_order", &found_order, "edges"_a, "effort"_a,
             "Return the order with the lowest peak found, that peak, and whether it is optimal.");
    module.def("min_cut", &reached_side, "nodes"_a, "edges"_a, "capacity"_a, "source"_a, "sink"_a,
               "Return 1 for each node on the source's side of the minimum cut, else 0.");
}

} // namespace tightship::bind
