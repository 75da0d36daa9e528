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

/// The calling thread sleeps until the process ends.
[[noreturn]] inline void sleep_forever() {
    for (;;)
        pause();
}

/// What `work` returns. A thread that Python ends within sleeps where it is.
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

/// Whether the calling thread may take the GIL, or has it: others than the one that ends the
/// interpreter may not once it has begun to.
inline bool may_take_gil() {
    return nanobind::is_alive() &&
           (Py_IsInitialized() != 0 || PyGILState_GetThisThreadState() != nullptr);
}

/// Has the GIL while it lives, whether the thread had it before or not.
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

/// What `work` returns, which calls Python and runs with the GIL.
template <class Work> decltype(auto) with_gil(Work &&work) {
    const GilTaken gil;
    return outliving(std::forward<Work>(work));
}

/// Drops a reference that native code held, on whatever thread; keeps it once Python is gone.
inline void drop(PyObject *held) {
    if (may_take_gil())
        with_gil([held] { Py_DECREF(held); });
}

} // namespace tightship::bind
