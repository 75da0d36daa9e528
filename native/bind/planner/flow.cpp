#include "bind.hpp"
#include "edges.hpp"
#include "gil.hpp"

#include "tightship/flow/conflicts.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>

namespace tightship::bind {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

/// Buffers of a program, and their conflicts.
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
        check_range(step, ancestors->steps(), "a buffer is touched by an unknown step");
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
    check_range(span_of(order), self.conflicts.count(), "order names an unknown buffer");
    place::Offsets offsets;
    {
        const GilReleased release;
        offsets = flow::place(self.conflicts, buffers, span_of(order),
                              tightest ? flow::Gap::tightest : flow::Gap::lowest);
    }
    return to_numpy(std::move(offsets));
}

} // namespace

void flow(nb::module_ &module) {
    nb::class_<flow::Ancestors>(module, "StepOrder", "Order of steps.")
        .def(
            "__init__",
            [](flow::Ancestors *self, std::size_t steps, const EdgeRows &edges) {
                new (self) flow::Ancestors(steps, edges_of(edges, steps));
            },
            "steps"_a, "edges"_a)
        .def("before",
             [](const flow::Ancestors &self, std::size_t a, std::size_t b) {
                 if (a >= self.steps() || b >= self.steps())
                     throw nb::index_error("a step is not below the number of steps");
                 return self.before(static_cast<flow::Step>(a), static_cast<flow::Step>(b));
             })
        .def_prop_ro("chains", &flow::Ancestors::chains);
    nb::class_<BufferOrder>(module, "BufferOrder",
                            "Order of buffers: which of them end before others begin.")
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
    nb::class_<BufferConflicts>(module, "BufferConflicts",
                                "Pairs of buffers that must not share bytes.")
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
                     throw nb::index_error("a buffer is not below the number of buffers");
                 return self.conflicts.meet(a, b);
             })
        .def("place", &place_buffers, "size"_a, "alignment"_a, "order"_a, "tightest"_a,
             "Return offsets that put each buffer, in the given order, into a gap between those "
             "before it.");
    module.def(
        "needed_edges",
        [](std::size_t steps, const EdgeRows &edges, const EdgeRows &added) {
            return to_numpy(flow::needed(steps, edges_of(edges, steps), edges_of(added, steps)));
        },
        "steps"_a, "edges"_a, "added"_a, "Return the added edges that do not follow from others.");
}

} // namespace tightship::bind
