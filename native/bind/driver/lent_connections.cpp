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

/// Bytes of a file that are mapped: the mapping, the file, and where they end in it.
using Mapped = std::tuple<const os::GuardedMapping *, int, int64_t>;

bool is_whole(const Mapped &mapped) {
    const auto &[mapping, file, stop] = mapped;
    struct stat found{};
    return !mapping->is_lost() && fstat(file, &found) == 0 && found.st_size >= stop;
}

/// Runs something, then looks whether what it read and wrote was there.
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
                               "Counts of one model's requests; times in nanoseconds.")
        .def(nb::init<>())
        .def("succeed", &RequestMetrics::succeed, "phase_ns"_a,
             "A request ended well, after waiting for its turn, reading inputs, running, and "
             "writing "
             "outputs.")
        .def("fail", &RequestMetrics::fail, "duration_ns"_a, "A request failed.")
        .def("now", &counts_of,
             nb::sig("def now(self) -> tuple[int, int, int, int, tuple[int, int, int, int], int]"),
             "At one moment: successes, failures, those that wait for a turn, ns of failures, ns "
             "of the four phases "
             "of successes, and when the last of these ended, in ms since 1970.");
}

using Exchange = std::pair<nb::bytes, nb::bytes>;

/// Counts of a model, and the name by which its runs take turns.
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
                                "Connections of HTTP whose next request has probably come before, "
                                "answered without Python. Any number of threads may wait.")
        .def(nb::init<RunPermits &>(), "permits"_a, nb::keep_alive<1, 2>(),
             "A run takes one of `permits`.")
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
            "Answer a request by a response from now on, after a run of steps [first, last) of a "
            "context that leaves all of `mapped` whole: mappings, files, and where they end in "
            "them. Runs are counted by the tally of `model`, and take turns by its name. The "
            "caller "
            "keeps all of it until `released` is called, which is when the number is forgotten and "
            "nothing of it runs.")
        .def(
            "remember_call",
            [](LentConnections &self, int64_t number, const Exchange &exchange,
               nb::typed<nb::callable, void()> run, std::vector<Mapped> mapped,
               nb::typed<nb::callable, void()> released, const Counted &model) {
                remember(self, number, exchange, checked(caller(run), std::move(mapped)), released,
                         model);
            },
            "number"_a, "exchange"_a, "run"_a, "mapped"_a, "released"_a, "model"_a,
            "Likewise by calling `run`; a request that it raises for goes the long way.")
        .def("forget", &LentConnections::forget, "number"_a, nb::call_guard<GilReleased>(),
             "Answer a request no more.")
        .def("lend", &LentConnections::lend, "connection"_a, "file"_a, "account"_a, "client"_a,
             "Answer what comes by a socket while it is known; the connection's number is new and "
             "positive, and the socket need not stay open. Of one model, accounts and their "
             "clients take permits. Raises RuntimeError where the system has no file left.")
        .def("recall", &LentConnections::recall, "connection"_a,
             "End that; False if the connection is on its way back, by `next`.")
        .def("idle_since", &LentConnections::idle_since, "connection"_a,
             "When it was lent or last answered, as `time.monotonic_ns` has it; None if a request "
             "is being answered, or it is on its way back.")
        .def("next", &next, nb::sig("def next(self) -> tuple[int, bool, bytes] | None"),
             "Waits without the GIL for a connection that comes back: whether what has come was "
             "answered, and what its socket did not take of that. None once this is closed.")
        .def("close", &LentConnections::close, "Have every `next` return None from now on.");
}

} // namespace tightship::bind
