/// Helpers of calls that run native steps.
#pragma once

#include "gil.hpp"
#include "tightship/run/program.hpp"

#include <nanobind/nanobind.h>

namespace tightship::bind {

inline std::optional<Watch::Clock::time_point> time_of(std::optional<int64_t> deadline_ns) {
    if (!deadline_ns)
        return std::nullopt;
    return Watch::Clock::time_point(std::chrono::nanoseconds(*deadline_ns));
}

/// Runs pending signal handlers; throws what they raise.
inline void check_signals() {
    with_gil([] {
        if (PyErr_CheckSignals() != 0)
            throw nanobind::python_error();
    });
}

inline const char *name_of(Outcome outcome) {
    switch (outcome) {
    case Outcome::kStopped:
        return "stopped";
    case Outcome::kDeadline:
        return "deadline";
    case Outcome::kDone:
        break;
    }
    return "done";
}

/// Runs steps without the GIL, unless they took little time the last time: many threads that run
/// small models would otherwise hand the GIL on twice for each run.
inline Outcome run_steps(Context &context, std::pair<size_t, size_t> steps, const StopFlag &stop,
                         std::optional<int64_t> deadline_ns, int64_t *ends_ns = nullptr) {
    const std::function<void()> poll = check_signals;
    std::optional<GilReleased> release;
    if (!context.is_short(steps.first, steps.second))
        release.emplace();
    return context.run(steps.first, steps.second, {stop, time_of(deadline_ns), poll}, ends_ns);
}

/// Returns the address of an object's C-contiguous buffer.
inline void *first_byte(nanobind::handle array) {
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_SIMPLE) != 0)
        throw nanobind::python_error();
    void *data = view.buf;
    PyBuffer_Release(&view);
    return data;
}

} // namespace tightship::bind
