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

template <size_t SIZE> nb::tuple tuple_of(const std::array<int64_t, SIZE> &values) {
    nb::list found;
    for (const int64_t value : values)
        found.append(value);
    return nb::tuple(found);
}

nb::tuple histograms_of(const RequestMetrics &self) {
    const driver::Histograms now = self.histograms();
    const auto said = [](const auto &each) {
        return nb::make_tuple(tuple_of(each.counts), each.sum);
    };
    return nb::make_tuple(said(now.queue), said(now.compute), said(now.received), said(now.sent));
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
        .def("transfer", &RequestMetrics::transfer, "received_bytes"_a, "sent_bytes"_a,
             "Count the messages of a successful request, beside `succeed`.")
        .def("histograms", &histograms_of,
             nb::sig("def histograms(self) -> tuple[tuple[tuple[int, ...], int], ...]"),
             "Return counts by bucket, and the sum, of the time in the queue, the time of "
             "computing, "
             "the bytes of requests and those of responses; the last bucket has no bound.")
        .def_static(
            "bounds",
            [] {
                return nb::make_tuple(tuple_of(driver::DURATION_BOUNDS),
                                      tuple_of(driver::SIZE_BOUNDS));
            },
            nb::sig("def bounds() -> tuple[tuple[int, ...], tuple[int, ...]]"),
            "Return the upper bounds of the buckets, of durations in nanoseconds and of sizes.")
        .def("now", &counts_of,
             nb::sig("def now(self) -> tuple[int, int, int, int, tuple[int, int, int, int], int]"),
             "Return successes, failures, waiting requests, duration of failures, durations of the "
             "four phases of successes, and the end of the last success in ms since 1970.");
}

} // namespace tightship::bind
