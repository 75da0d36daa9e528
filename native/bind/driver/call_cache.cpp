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

/// The answer as bytes, none, or `b""`: as `RingCaller::call` has it.
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
             "Watch a connection from now on. Raises RuntimeError if the system refuses.")
        .def("next", &next, nb::sig("def next(self) -> tuple[int, int, bytes]"),
             "Waits without the GIL for what is not to be answered here: its file, its events, and "
             "an answer that its socket did not take. No other thread is given that file until "
             "`watch`.")
        .def("watch", &CallCache::watch, "file"_a, "events"_a,
             "Have a connection that `next` has given watched again.")
        .def("watch_for", &CallCache::watch_for, "file"_a, "events"_a,
             "Have a connection watched for these, by any thread: at once, or when another thread "
             "that answers it lets it go.")
        .def("close", &CallCache::close, "file"_a, nb::call_guard<GilReleased>(),
             "Watch a connection no more, and close its ring.");
}

void ring_caller(nb::module_ &module) {
    nb::class_<RingCaller>(module, "RingCaller",
                           "A client's side of a ring; one thread at a time uses it.")
        .def(nb::init<int>(), "memory"_a,
             "Maps a memfd, which may be closed then. Raises RuntimeError if it cannot.")
        .def("call", &call, "message"_a,
             "The answer; `b\"\"` if it will come by the socket, None if the call is to be made "
             "there. Looks for it for a while, without the GIL.")
        .def("dismiss", &RingCaller::dismiss, "Have the driver look at the socket at once.")
        .def_ro_static("SIZE_BYTES", &driver::kRingBytes, "Of its memory.")
        .def_prop_ro_static(
            "ELSEWHERE",
            [](nb::handle) {
                return nb::bytes(driver::kElsewhere.data(), driver::kElsewhere.size());
            },
            "What a call is answered that is to be made by the socket.");
}

} // namespace

void repeats(nb::module_ &module) {
    nb::class_<CallCache> self(
        module, "CallCache",
        "Calls that have come before, answered without Python. Any number of "
        "threads may wait.");
    watching(self);
    self.def(nb::init<int, driver::RunPermits &>(), "calls"_a, "permits"_a, nb::keep_alive<1, 3>(),
             "`calls` is an epoll descriptor whose sockets are watched for one event at a time; a "
             "run takes one of `permits`, or goes the long way if none is free.")
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
            "Answer a call from now on by a run of steps [first, last), counted by `metrics`, "
            "whose "
            "turn is that of a `Place` with these names. The caller keeps all that is given, and "
            "what is read and written, until the call is forgotten.")
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
            "Likewise by calling `run`; a call that it raises for goes the long way.")
        .def("forget", &CallCache::forget, "file"_a, "session"_a, nb::call_guard<GilReleased>(),
             "Answer no call of a session any more, or of any if it is 0; returns once none runs.")
        .def("pause", &CallCache::pause, "file"_a,
             "Answer no call of a connection, whose socket nobody looks at, until `resume`.")
        .def("resume", &CallCache::resume, "file"_a,
             "Answer calls of a connection again; harmless where that was so all the time.")
        .def("open_ring", &CallCache::open_ring, "file"_a, "memory"_a,
             "Calls of a connection may come through a ring, a memfd of `RingCaller.SIZE_BYTES`, "
             "as well. Raises RuntimeError if it cannot be mapped.")
        .def("set_polling", &CallCache::set_polling, "threads"_a,
             "How many threads may attend to rings at once; none at first.");
    ring_caller(module);
}

} // namespace tightship::bind
