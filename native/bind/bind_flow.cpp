#include "bind.hpp"
#include "columns.hpp"

#include "tightship/flow/conflicts.hpp"
#include "tightship/flow/least_order.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

namespace tightship::bind {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

using EdgeRows = nb::ndarray<const std::int64_t, nb::shape<2, -1>, nb::c_contig, nb::device::cpu>;

std::span<const std::int64_t> span_of(const Row &row) {
    return {row.data(), row.shape(0)};
}

void check_range(std::span<const std::int64_t> numbers, std::size_t count, const char *what) {
    for (const std::int64_t number : numbers)
        if (number < 0 || static_cast<std::size_t>(number) >= count)
            throw nb::index_error(what);
}

void check_length(const Row &row, std::size_t count, const char *what) {
    if (row.shape(0) != count)
        throw nb::value_error(what);
}

flow::Edges edges_of(const EdgeRows &rows, std::size_t steps) {
    const std::size_t count = rows.shape(1);
    const flow::Edges edges{{rows.data(), count}, {rows.data() + count, count}};
    check_range(edges.to, steps, "an edge ends at no step");
    for (std::size_t i = 0; i < count; ++i)
        if (edges.from[i] < 0 || edges.from[i] >= edges.to[i])
            throw nb::value_error("an edge does not lead to a later step");
    return edges;
}

/// What buffers a program has, and which of them may hold bytes at the same time.
struct BufferOrder {
    std::shared_ptr<flow::Ancestors> ancestors;
    std::vector<std::int64_t> step, stop, kept;
    flow::Touches touches;
    flow::Order order;

    BufferOrder(std::shared_ptr<flow::Ancestors> steps, const Row &step, const Row &stop,
                const Row &kept)
        : ancestors(std::move(steps)), step(copied(step)), stop(copied(stop)), kept(copied(kept)),
          touches(checked()), order(*ancestors, touches) {}

    BufferOrder(const BufferOrder &) = delete; // the columns are pointed into
    BufferOrder &operator=(const BufferOrder &) = delete;

    static std::vector<std::int64_t> copied(const Row &row) {
        return {row.data(), row.data() + row.shape(0)};
    }

    flow::Touches checked() const {
        check_range(step, ancestors->steps(), "a buffer is touched by no step there is");
        std::int64_t last = 0;
        for (const std::int64_t end : stop) {
            if (end <= last)
                throw nb::value_error("a buffer is touched by no step");
            last = end;
        }
        if (last != static_cast<std::int64_t>(step.size()) || kept.size() != stop.size())
            throw nb::value_error("columns of buffers have different lengths");
        return {step, stop, kept};
    }
};

flow::Sized sized(const BufferOrder &self, const Row &size, const Row &alignment) {
    check_length(size, self.order.count(), "sizes have another length than the buffers");
    check_length(alignment, self.order.count(), "alignments have another length");
    return {span_of(size), span_of(alignment)};
}

struct BufferConflicts {
    std::shared_ptr<BufferOrder> order;
    flow::Conflicts conflicts;
};

Result place_buffers(const BufferConflicts &self, const Row &size, const Row &alignment,
                     const Row &order, bool tightest) {
    const flow::Sized buffers = sized(*self.order, size, alignment);
    check_length(order, self.conflicts.count(), "order has another length than the buffers");
    check_range(span_of(order), self.conflicts.count(), "order holds an index of no buffer");
    place::Offsets offsets;
    {
        nb::gil_scoped_release release;
        offsets = flow::place(self.conflicts, buffers, span_of(order),
                              tightest ? flow::Gap::tightest : flow::Gap::lowest);
    }
    return to_numpy(std::move(offsets));
}

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
        check_range(touch, size.size(), "a step touches no cell there is");
        check_range(over_new, size.size(), "a pair names no cell there is");
        check_range(over_old, size.size(), "a pair names no cell there is");
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

std::tuple<Result, std::int64_t, bool> least_order(const StepTraffic &self, const EdgeRows &edges,
                                                   std::int64_t effort) {
    const flow::Edges checked = edges_of(edges, self.traffic.steps());
    flow::LeastOrder found;
    {
        nb::gil_scoped_release release;
        found = flow::least_order(self.traffic, checked, effort);
    }
    return {to_numpy(std::move(found.order)), found.peak, found.is_least};
}

} // namespace

void flow(nb::module_ &module) {
    nb::class_<flow::Ancestors>(module, "StepOrder", "Which steps come before which.")
        .def(
            "__init__",
            [](flow::Ancestors *self, std::size_t steps, const EdgeRows &edges) {
                new (self) flow::Ancestors(steps, edges_of(edges, steps));
            },
            "steps"_a, "edges"_a)
        .def("before",
             [](const flow::Ancestors &self, std::size_t a, std::size_t b) {
                 if (a >= self.steps() || b >= self.steps())
                     throw nb::index_error("there is no such step");
                 return self.before(static_cast<flow::Step>(a), static_cast<flow::Step>(b));
             })
        .def_prop_ro("chains", &flow::Ancestors::chains);
    nb::class_<BufferOrder>(module, "BufferOrder", "Which buffers come before which.")
        .def(nb::init<std::shared_ptr<flow::Ancestors>, const Row &, const Row &, const Row &>(),
             "steps"_a, "step"_a, "stop"_a, "kept"_a)
        .def(
            "implied",
            [](const BufferOrder &self, const Row &size, const Row &alignment, const Row &offsets) {
                const flow::Sized buffers = sized(self, size, alignment);
                check_length(offsets, self.order.count(), "offsets have another length");
                return flow::implied(self.order, self.touches, buffers, span_of(offsets),
                                     *self.ancestors);
            },
            "size"_a, "alignment"_a, "offsets"_a);
    nb::class_<BufferConflicts>(module, "BufferConflicts", "Which buffers must not share bytes.")
        .def(
            "__init__",
            [](BufferConflicts *self, std::shared_ptr<BufferOrder> order, const Row &group) {
                if (group.shape(0) != 0)
                    check_length(group, order->order.count(), "groups have another length");
                const flow::Order &ordered = order->order;
                new (self)
                    BufferConflicts{std::move(order), flow::Conflicts(ordered, span_of(group))};
            },
            "order"_a, "group"_a)
        .def("meet",
             [](const BufferConflicts &self, std::size_t a, std::size_t b) {
                 if (a >= self.conflicts.count() || b >= self.conflicts.count())
                     throw nb::index_error("there is no such buffer");
                 return self.conflicts.meet(a, b);
             })
        .def("place", &place_buffers, "size"_a, "alignment"_a, "order"_a, "tightest"_a,
             "Offsets: each buffer in a gap that those before leave it.");
    nb::class_<StepTraffic>(module, "StepTraffic", "What steps do to bytes.")
        .def(nb::init<const std::pair<Row, Row> &, const std::pair<Row, Row> &, const Row &,
                      const std::tuple<Row, Row, Row> &>(),
             "cells"_a, "touched"_a, "scratch"_a, "over"_a)
        .def(
            "peak",
            [](const StepTraffic &self, const Row &order) {
                check_range(span_of(order), self.traffic.steps(), "there is no such step");
                return flow::peak_of(self.traffic, span_of(order));
            },
            "order"_a, "The largest load of steps that run in an order.")
        .def("least_order", &least_order, "edges"_a, "effort"_a,
             "An order with a peak as low as was found, that peak, and whether no order has less.");
    module.def(
        "needed_edges",
        [](std::size_t steps, const EdgeRows &edges, const EdgeRows &added) {
            return to_numpy(flow::needed(steps, edges_of(edges, steps), edges_of(added, steps)));
        },
        "steps"_a, "edges"_a, "added"_a, "Those of the edges added that follow from no others.");
}

} // namespace tightship::bind
