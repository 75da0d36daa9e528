#include "bind.hpp"
#include "gil.hpp"

#include "tightship/driver/queued_runs.hpp"
#include "tightship/driver/run_permits.hpp"

#include <algorithm>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <stdexcept>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using driver::Place;
using driver::QueuedRuns;
using driver::RunPermits;
using Seconds = std::chrono::duration<double>;

/// More than anybody waits, and as nanoseconds no overflow.
constexpr double kPatienceMax = 1e9;

bool take(RunPermits &self, Place &place, std::optional<double> timeout_s) {
    std::optional<std::chrono::nanoseconds> patience;
    if (timeout_s)
        patience = std::chrono::duration_cast<std::chrono::nanoseconds>(
            Seconds(std::clamp(*timeout_s, 0.0, kPatienceMax)));
    if (self.take_free(place))
        return true;
    const GilReleased release;
    return self.take(place, patience);
}

void place(nb::module_ &module) {
    nb::class_<Place>(module, "Place",
                      "A caller who may wait for a turn, one at a time: groups that it belongs to, "
                      "the widest first, such as a model and an account.")
        .def(
            "__init__",
            [](Place *self, driver::Names names, driver::RequestMetrics &metrics,
               int64_t priority) {
                new (self)
                    Place{.names = std::move(names), .priority = priority, .metrics = &metrics};
            },
            "names"_a, "metrics"_a, "priority"_a = 0, nb::keep_alive<1, 3>(),
            "`metrics` counts it while it waits.");
}

void queued_runs(nb::module_ &module) {
    nb::class_<QueuedRuns>(module, "QueuedRuns",
                           "Runs that wait for a permit while no thread does, by number.")
        .def(nb::init<RunPermits &, int>(), "permits"_a, "bell"_a, nb::keep_alive<1, 2>(),
             "An eventfd, `bell`, is added 1 to for each turn that comes to a run that has waited.")
        .def(
            "join", &QueuedRuns::join, "run"_a, "names"_a, "priority"_a, "metrics"_a,
            "A run takes a turn, or waits for one as a `Place` does; whether it was taken at once. "
            "The caller keeps the metrics.")
        .def("next", &QueuedRuns::next,
             "The next waiting run that has been given a turn; None if there is none.")
        .def("leave", &QueuedRuns::leave, "run"_a,
             "A run wants no turn any more; one that has come, and `next` has not told, goes back.")
        .def("give_back", &QueuedRuns::give_back, "run"_a, "A run that had a turn has ended.");
}

} // namespace

void permits(nb::module_ &module) {
    place(module);
    nb::class_<RunPermits>(module, "RunPermits",
                           "Limits concurrent runs of all callers. Callers that wait have permits "
                           "by group: one that has had a turn goes behind the others of its level.")
        .def(
            "__init__",
            [](RunPermits *self, int count) {
                if (count < 1)
                    throw std::invalid_argument("There must be a permit.");
                new (self) RunPermits(count);
            },
            "count"_a)
        .def_prop_ro("count", &RunPermits::count, "Of all permits.")
        .def_prop_ro("is_free", &RunPermits::is_free, "Whether one could be taken without a wait.")
        .def_prop_ro("taken_count", &RunPermits::taken_count, "How many permits are taken.")
        .def_prop_ro("waiting_count", &RunPermits::waiting_count, "How many callers wait for one.")
        .def("take_free", nb::overload_cast<>(&RunPermits::take_free),
             "Takes a turn if one is free; whether it did.")
        .def("take", &take, "place"_a, "timeout_s"_a = nb::none(),
             "Takes a turn, waiting without the GIL; False if none came in time, or the caller "
             "left before one came.")
        .def("leave", &RunPermits::leave, "place"_a,
             "Have a caller, now or later, wait no more; whether it was waiting.")
        .def(
            "give_back",
            [](RunPermits &self, const Place *place) {
                self.give_back(place == nullptr ? driver::Names() : place->names);
            },
            "place"_a = nb::none(), "The run of a caller has ended; None if it was not used.");
    queued_runs(module);
}

} // namespace tightship::bind
