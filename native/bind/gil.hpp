/// The GIL, released and taken by threads that may outlive the interpreter.
///
/// When the interpreter ends, Python 3.13 and earlier end a daemon thread that asks for the GIL
/// with `pthread_exit`, which unwinds the thread's stack. C++ aborts the process there, because the
/// stack has destructors and functions of nanobind's that must not throw. Such a thread sleeps for
/// ever instead, as Python 3.14 has it do.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>
#include <utility>

namespace tightship::bind {

/// Blocks the calling thread until the process ends.
[[noreturn]] inline void sleep_forever() {
    for (;;)
        pause();
}

/// Returns what `work` returns. If Python ends the thread within `work`, the thread sleeps there.
template <class Work> decltype(auto) outliving(Work &&work) {
    try {
        return std::forward<Work>(work)();
    } catch (const abi::__forced_unwind &) {
        sleep_forever();
    }
}

/// Releases the GIL while it lives.
class GilReleased {
  public:
    GilReleased() noexcept : state_(PyEval_SaveThread()) {}
    ~GilReleased() {
        outliving([this] { PyEval_RestoreThread(state_); });
    }
    GilReleased(const GilReleased &) = delete;
    GilReleased &operator=(const GilReleased &) = delete;

  private:
    PyThreadState *state_;
};

/// Returns whether the calling thread may take the GIL, or has it. Once the interpreter has begun
/// to end, only the thread that ends it may.
inline bool may_take_gil() {
    return nanobind::is_alive() &&
           (Py_IsInitialized() != 0 || PyGILState_GetThisThreadState() != nullptr);
}

/// Holds the GIL while it lives, whether the thread held it before or not.
class GilTaken {
  public:
    GilTaken() noexcept : state_(take()) {}
    ~GilTaken() { PyGILState_Release(state_); }
    GilTaken(const GilTaken &) = delete;
    GilTaken &operator=(const GilTaken &) = delete;

  private:
    static PyGILState_STATE take() {
        if (!may_take_gil())
            sleep_forever();
        return outliving([] { return PyGILState_Ensure(); });
    }

    PyGILState_STATE state_;
};

/// Runs `work`, which calls Python, with the GIL and returns its result.
template <class Work> decltype(auto) with_gil(Work &&work) {
    const GilTaken gil;
    return outliving(std::forward<Work>(work));
}

/// Drops a reference of native code on any thread; leaks it once the interpreter has ended.
inline void drop(PyObject *held) {
    if (may_take_gil())
        with_gil([held] { Py_DECREF(held); });
}

} // namespace tightship::bind
