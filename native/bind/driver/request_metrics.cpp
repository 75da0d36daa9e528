#include "bind.hpp"

#include "tightship/driver/request_metrics.hpp"

#include <nanobind/stl/array.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using driver::Counts;
using driver::RequestMetrics;

nb::tuple counts_of(const RequestMetrics &self) {
    const Counts now = self.now();
    const auto &[queue_ns, input_ns, infer_ns, output_ns] = now.phase_ns;
    return nb::make_tuple(now.successes, now.failures, now.pending, now.fail_ns,
                          nb::make_tuple(queue_ns, input_ns, infer_ns, output_ns), now.last_ms);
}

} // namespace

void request_metrics(nb::module_ &module) {
    nb::class_<RequestMetrics>(module, "RequestMetrics",
                               "Request metrics of one model; durations in nanoseconds.")
        .def(nb::init<>())
        .def("succeed", &RequestMetrics::succeed, "phase_ns"_a,
             "Count a successful request, by the durations of waiting, reading inputs, running and "
             "writing outputs.")
        .def("fail", &RequestMetrics::fail, "duration_ns"_a, "Count a failed request.")
        .def("now", &counts_of,
             nb::sig("def now(self) -> tuple[int, int, int, int, tuple[int, int, int, int], int]"),
             "Return successes, failures, waiting requests, duration of failures, durations of the "
             "four phases of successes, and the end of the last success in ms since 1970.");
}

} // namespace tightship::bind
