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
