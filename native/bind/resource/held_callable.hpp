/// Python function that native code holds, calls and drops, on any thread.
#pragma once

#include "gil.hpp"

#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <string>

namespace tightship::bind {

class HeldCallable {
  public:
    explicit HeldCallable(nanobind::callable function)
        : function_(function.release().ptr(), drop) {}

    /// Returns the function. REQUIRES: the GIL is held.
    nanobind::handle get() const { return function_.get(); }
    nanobind::callable function() const { return nanobind::borrow<nanobind::callable>(get()); }

    /// Returns whether the garbage collector has begun to clear the function: it must not be
    /// called. REQUIRES: the GIL is held.
    bool is_taken_apart() const {
        nanobind::object function = nanobind::borrow(get());
        if (nanobind::hasattr(function, "__func__"))
            function = function.attr("__func__");
        return nanobind::hasattr(function, "__globals__") &&
               nanobind::object(function.attr("__globals__")).is_none();
    }

  private:
    std::shared_ptr<PyObject> function_;
};

/// Text of the last exception of a function, for the refusal that it caused.
class Raised {
  public:
    /// Records an exception. REQUIRES: the GIL is held.
    void note(const nanobind::python_error &error) {
        const std::string words =
            std::string(nanobind::str(error.type().attr("__name__")).c_str()) + ": " +
            nanobind::str(error.value()).c_str();
        const std::lock_guard lock(mutex_);
        words_ = words;
    }
    std::string words() const {
        const std::lock_guard lock(mutex_);
        return words_;
    }

  private:
    mutable std::mutex mutex_;
    std::string words_;
};

} // namespace tightship::bind
