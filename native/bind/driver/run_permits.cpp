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

/// Longest wait in seconds; fits an integer of nanoseconds.
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
    nb::class_<Place>(
        module, "Place",
        "Caller that may wait for one run permit at a time, by its groups, the widest "
        "first, such as a model and an account.")
        .def(
            "__init__",
            [](Place *self, driver::Names names, driver::RequestMetrics &metrics,
               int64_t priority) {
                new (self)
                    Place{.names = std::move(names), .priority = priority, .metrics = &metrics};
            },
            "names"_a, "metrics"_a, "priority"_a = 0, nb::keep_alive<1, 3>(),
            "Create a caller, which `metrics` counts while it waits.");
}

void queued_runs(nb::module_ &module) {
    nb::class_<QueuedRuns>(module, "QueuedRuns",
                           "Runs that wait for a run permit without occupying a thread, by number.")
        .def(nb::init<RunPermits &, int>(), "permits"_a, "bell"_a, nb::keep_alive<1, 2>(),
             "Add 1 to the eventfd `bell` for each permit that a waiting run gets.")
        .def("join", &QueuedRuns::join, "run"_a, "names"_a, "priority"_a, "metrics"_a,
             "Take a permit for a run, or queue it as a `Place`; return whether it was taken. The "
             "caller keeps the tally.")
        .def("next", &QueuedRuns::next,
             "Return the next waiting run that has got a permit; None if there is none.")
        .def("leave", &QueuedRuns::leave, "run"_a,
             "Remove a run; a permit that `next` has not reported yet is given back.")
        .def("give_back", &QueuedRuns::give_back, "run"_a,
             "Give back the permit of a run that has ended.");
}

} // namespace

void permits(nb::module_ &module) {
    place(module);
    nb::class_<RunPermits>(
        module, "RunPermits",
        "Limited run permits. Waiting callers alternate by group: one that has run "
        "goes behind the others of its level.")
        .def(
            "__init__",
            [](RunPermits *self, int count) {
                if (count < 1)
                    throw std::invalid_argument("The count of run permits must be at least 1.");
                new (self) RunPermits(count);
            },
            "count"_a)
        .def_prop_ro("count", &RunPermits::count, "Number of permits.")
        .def_prop_ro("is_free", &RunPermits::is_free, "Whether a permit is free.")
        .def_prop_ro("taken_count", &RunPermits::taken_count, "Number of permits that are taken.")
        .def_prop_ro("waiting_count", &RunPermits::waiting_count, "Number of waiting callers.")
        .def("take_free", nb::overload_cast<>(&RunPermits::take_free),
             "Take a permit if one is free; return whether it did.")
        .def("take", &take, "place"_a, "timeout_s"_a = nb::none(),
             "Take a permit, waiting without the GIL; False if none came in time, or the caller "
             "left before.")
        .def("leave", &RunPermits::leave, "place"_a,
             "Remove a caller for good; return whether it was waiting.")
        .def(
            "give_back",
            [](RunPermits &self, const Place *place) {
                self.give_back(place == nullptr ? driver::Names() : place->names);
            },
            "place"_a = nb::none(),
            "Give back the permit of a caller; None for one from `take_free`.");
    queued_runs(module);
}

} // namespace tightship::bind
