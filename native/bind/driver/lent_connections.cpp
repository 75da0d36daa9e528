#include "bind.hpp"
#include "repeatable.hpp"

#include "tightship/driver/lent_connections.hpp"
#include "tightship/os/guard.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <sys/stat.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using driver::Counts;
using driver::LentConnections;
using driver::RequestMetrics;
using driver::RunPermits;

/// Mapped bytes of a file: the mapping, the file, and the end of the bytes in it.
using Mapped = std::tuple<const os::GuardedMapping *, int, int64_t>;

bool is_whole(const Mapped &mapped) {
    const auto &[mapping, file, stop] = mapped;
    struct stat found{};
    return !mapping->is_lost() && fstat(file, &found) == 0 && found.st_size >= stop;
}

/// Returns a function that runs, then checks that all memory it used was there.
std::function<bool()> checked(std::function<bool()> run, std::vector<Mapped> mapped) {
    return [run = std::move(run), mapped = std::move(mapped)] {
        return run() && std::ranges::all_of(mapped, is_whole);
    };
}

std::string text(const nb::bytes &bytes) {
    return {bytes.c_str(), bytes.size()};
}

nb::tuple counts_of(const RequestMetrics &self) {
    const Counts now = self.now();
    const auto &[queue_ns, input_ns, infer_ns, output_ns] = now.phase_ns;
    return nb::make_tuple(now.successes, now.failures, now.pending, now.fail_ns,
                          nb::make_tuple(queue_ns, input_ns, infer_ns, output_ns), now.last_ms);
}

void metrics(nb::module_ &module) {
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

using Exchange = std::pair<nb::bytes, nb::bytes>;

/// Metrics of a model, and the name by which its runs alternate.
using Counted = std::pair<RequestMetrics *, std::string>;

void remember(LentConnections &self, int64_t number, const Exchange &exchange,
              std::function<bool()> run, nb::handle released, const Counted &counted) {
    driver::KnownRequest known{text(exchange.first),
                               text(exchange.second),
                               std::move(run),
                               [released] {
                                   with_gil([&] {
                                       try {
                                           released();
                                       } catch (nb::python_error &error) {
                                           error.discard_as_unraisable(released);
                                       }
                                   });
                               },
                               counted.first,
                               counted.second};
    const GilReleased release;
    self.remember(number, std::move(known));
}

nb::object next(LentConnections &self) {
    std::optional<driver::Returned> returned;
    {
        const GilReleased release;
        returned = self.next();
    }
    if (!returned)
        return nb::none();
    return nb::make_tuple(returned->connection, returned->is_known,
                          nb::bytes(returned->unsent.data(), returned->unsent.size()));
}

} // namespace

void lent_connections(nb::module_ &module) {
    metrics(module);
    nb::class_<LentConnections>(module, "LentConnections",
                                "Fast-path HTTP connections, whose known requests are answered "
                                "without Python. Any number of threads may wait.")
        .def(nb::init<RunPermits &>(), "permits"_a, nb::keep_alive<1, 2>(),
             "Take one of `permits` for each run.")
        .def(
            "remember",
            [](LentConnections &self, int64_t number, const Exchange &exchange,
               std::tuple<Context *, std::pair<size_t, size_t>, const StopFlag *> run,
               std::vector<Mapped> mapped, nb::typed<nb::callable, void()> released,
               const Counted &model) {
                const auto &[context, steps, stop] = run;
                remember(self, number, exchange,
                         checked(runner(*context, steps, *stop), std::move(mapped)), released,
                         model);
            },
            "number"_a, "exchange"_a, "run"_a, "mapped"_a, "released"_a, "model"_a,
            "Answer a request by a response after a run of steps [first, last) of a context, if "
            "all "
            "of `mapped` is still there: mappings, files, and ends in them. The tally of `model` "
            "counts runs, and its name is the group by which they alternate. The caller keeps all "
            "arguments until `released` is called, once the number is forgotten and nothing runs.")
        .def(
            "remember_call",
            [](LentConnections &self, int64_t number, const Exchange &exchange,
               nb::typed<nb::callable, void()> run, std::vector<Mapped> mapped,
               nb::typed<nb::callable, void()> released, const Counted &model) {
                remember(self, number, exchange, checked(caller(run), std::move(mapped)), released,
                         model);
            },
            "number"_a, "exchange"_a, "run"_a, "mapped"_a, "released"_a, "model"_a,
            "Answer a request after a call of `run`; if it raises, the slow path is used.")
        .def("forget", &LentConnections::forget, "number"_a, nb::call_guard<GilReleased>(),
             "Stop answering a request.")
        .def("lend", &LentConnections::lend, "connection"_a, "file"_a, "account"_a, "client"_a,
             "Answer known requests on a socket. The connection's number must be new and positive; "
             "the caller may close the socket. Accounts of a model and their clients alternate. "
             "Raises RuntimeError if no descriptor is left.")
        .def("recall", &LentConnections::recall, "connection"_a,
             "Take a connection back; False if `next` returns it instead.")
        .def(
            "idle_since", &LentConnections::idle_since, "connection"_a,
            "Return the time of the loan or the last response, by `time.monotonic_ns`; None during "
            "a request, or if `next` is about to return the connection.")
        .def(
            "next", &next, nb::sig("def next(self) -> tuple[int, bool, bytes] | None"),
            "Wait without the GIL for a connection to return: its number, whether the last request "
            "was answered, and what the socket did not accept of that. None once this is closed.")
        .def("close", &LentConnections::close, "Make every `next` return None.");
}

} // namespace tightship::bind
