/// Binds the resource that serves repeated requests at planned offsets.
#include "bind.hpp"
#include "count.hpp"

#include "tightship/resource/adaptor/planned.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::MemoryResource;
using resource::PlannedRequest;
using resource::PlannedResource;
using resource::RecordedRequest;

using PlannedRow = std::tuple<Count, Count, std::optional<Count>>;
using RecordedRow = std::tuple<size_t, size_t, size_t, std::optional<size_t>>;

std::vector<RecordedRow> recorded(const PlannedResource &self) {
    std::vector<RecordedRow> rows;
    for (const RecordedRequest &request : self.recorded())
        rows.emplace_back(request.size_bytes, request.alignment, request.start_step,
                          request.stop_step == SIZE_MAX ? std::nullopt
                                                        : std::optional(request.stop_step));
    return rows;
}

void set_plan(PlannedResource &self, const std::vector<PlannedRow> &rows, Count capacity,
              Count alignment) {
    std::vector<PlannedRequest> requests;
    for (const auto &[size, boundary, offset] : rows)
        requests.push_back({at_least(1, "size_bytes", size), power_of_two("alignment", boundary),
                            offset ? at_least(0, "offset_bytes", *offset) : SIZE_MAX});
    self.set_plan(std::move(requests), at_least(0, "capacity_bytes", capacity),
                  power_of_two("alignment", alignment));
}

} // namespace

void planned_resource(nb::module_ &module) {
    nb::class_<PlannedResource, resource::Adaptor>(
        module, "PlannedResource", "Serves a repeated sequence of requests at planned offsets.")
        .def(nb::init<std::shared_ptr<MemoryResource>>(), "upstream"_a)
        .def("restart", &PlannedResource::restart,
             "Begin an iteration: the plan's first request is expected next.")
        .def("recorded", &recorded,
             "List requests since `restart`: size, alignment, step of allocation, step of freeing "
             "or\nNone. Steps count allocations and frees.")
        .def("set_plan", &set_plan, "requests"_a, "capacity_bytes"_a, "alignment"_a,
             "Expect requests of a size, alignment and offset each (None: upstream serves it), "
             "within\n`capacity_bytes` of upstream.\n\nRaises OutOfMemoryError if upstream refuses "
             "these; InputError if a block of the previous\nplan is live, or a request is outside.")
        .def_prop_ro("hit_count", &PlannedResource::hit_count, "Requests that matched the plan.")
        .def_prop_ro("surprise_count", &PlannedResource::surprise_count,
                     "Requests that did not match, or whose place was taken; upstream served them.")
        .def_prop_ro("planned_count", &PlannedResource::planned_count,
                     "Live blocks at planned offsets.")
        .def_prop_ro("capacity_bytes", &PlannedResource::capacity_bytes,
                     "Bytes of the plan; 0 without one.");
}

} // namespace tightship::bind
