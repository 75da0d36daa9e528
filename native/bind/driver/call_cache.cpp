#include "bind.hpp"
#include "repeatable.hpp"

#include "tightship/driver/call_cache.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using driver::CachedCall;
using driver::CallCache;
using driver::RingCaller;

std::string text(const nb::bytes &bytes) {
    return {bytes.c_str(), bytes.size()};
}

/// Returns the result of `RingCaller::call` as bytes or none.
std::optional<nb::bytes> call(RingCaller &self, const nb::bytes &message) {
    std::optional<std::string> answer;
    {
        const GilReleased release;
        answer = self.call({message.c_str(), message.size()});
    }
    if (!answer)
        return {};
    return nb::bytes(answer->data(), answer->size());
}

nb::tuple next(CallCache &self) {
    driver::Ready ready{};
    {
        const GilReleased release;
        ready = self.next();
    }
    return nb::make_tuple(ready.file, ready.events,
                          nb::bytes(ready.unsent.data(), ready.unsent.size()));
}

void watching(nb::class_<CallCache> &self) {
    self.def("open", &CallCache::open, "file"_a,
             "Watch a connection. Raises RuntimeError if the system refuses.")
        .def(
            "next", &next, nb::sig("def next(self) -> tuple[int, int, bytes]"),
            "Wait without the GIL for an event that is not handled here: its file, its events, and "
            "a reply that its socket did not accept. No other thread gets that file until `watch`.")
        .def("watch", &CallCache::watch, "file"_a, "events"_a,
             "Watch a connection again that `next` has returned.")
        .def("watch_for", &CallCache::watch_for, "file"_a, "events"_a,
             "Watch a connection for these events, from any thread: at once, or once the thread "
             "that answers it is done.")
        .def("close", &CallCache::close, "file"_a, nb::call_guard<GilReleased>(),
             "Stop watching a connection, and close its ring.");
}

void ring_caller(nb::module_ &module) {
    nb::class_<RingCaller>(module, "RingCaller",
                           "Client's side of a ring, for one thread at a time.")
        .def(nb::init<int>(), "memory"_a,
             "Map a memfd, which may then be closed. Raises RuntimeError if that fails.")
        .def("call", &call, "message"_a,
             "Return the reply; `b\"\"` if it will come by the socket, None if the call must be "
             "made "
             "there. Polls for a while, without the GIL.")
        .def("dismiss", &RingCaller::dismiss, "Make the driver read the socket at once.")
        .def_ro_static("SIZE_BYTES", &driver::kRingBytes, "Size of its memory.")
        .def_prop_ro_static(
            "ELSEWHERE",
            [](nb::handle) {
                return nb::bytes(driver::kElsewhere.data(), driver::kElsewhere.size());
            },
            "Reply to a call that must be made by the socket instead.");
}

} // namespace

void repeats(nb::module_ &module) {
    nb::class_<CallCache> self(
        module, "CallCache",
        "CachedCall calls, answered without Python. Any number of threads may "
        "wait.");
    watching(self);
    self.def(nb::init<int, driver::RunPermits &>(), "calls"_a, "permits"_a, nb::keep_alive<1, 3>(),
             "Watch sockets at the epoll descriptor `calls` for one event at a time. A run takes "
             "one "
             "of `permits`; if none is free, the slow path is used.")
        .def(
            "remember",
            [](CallCache &self, int file, int64_t session,
               std::pair<nb::bytes, nb::bytes> call_and_answer, Context &context,
               std::pair<size_t, size_t> steps, const StopFlag &stop,
               driver::RequestMetrics &metrics, driver::Names names) {
                const auto &[call, answer] = call_and_answer;
                self.remember(file, {session, text(call), runner(context, steps, stop),
                                     text(answer), &metrics, std::move(names)});
            },
            "file"_a, "session"_a, "call_and_answer"_a, "context"_a, "steps"_a, "stop"_a,
            "metrics"_a, "names"_a,
            "Answer a call by a run of steps [first, last), counted by `metrics`, with the run "
            "permit "
            "of a `Place` with these names. The caller keeps all arguments, and the memory that is "
            "read and written, until the call is forgotten.")
        .def(
            "remember_call",
            [](CallCache &self, int file, int64_t session,
               std::pair<nb::bytes, nb::bytes> call_and_answer, nb::typed<nb::callable, void()> run,
               driver::RequestMetrics &metrics, driver::Names names) {
                const auto &[call, answer] = call_and_answer;
                self.remember(file, {session, text(call), caller(run), text(answer), &metrics,
                                     std::move(names)});
            },
            "file"_a, "session"_a, "call_and_answer"_a, "run"_a, "metrics"_a, "names"_a,
            "Answer a call by calling `run`; if it raises, the slow path is used.")
        .def("forget", &CallCache::forget, "file"_a, "session"_a, nb::call_guard<GilReleased>(),
             "Stop answering the calls of a session, or all if it is 0; returns once none runs.")
        .def("pause", &CallCache::pause, "file"_a,
             "Answer no call of a connection until `resume`. No thread may be reading its socket.")
        .def("resume", &CallCache::resume, "file"_a,
             "Answer calls of a connection again; harmless if they were not paused.")
        .def("open_ring", &CallCache::open_ring, "file"_a, "memory"_a,
             "Accept calls of a connection through a ring as well, a memfd of "
             "`RingCaller.SIZE_BYTES`. Raises RuntimeError if it cannot be mapped.")
        .def("set_polling", &CallCache::set_polling, "threads"_a,
             "Set how many threads may poll rings at once; none at first.");
    ring_caller(module);
}

} // namespace tightship::bind
