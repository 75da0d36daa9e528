/// What bound objects show to Python's garbage collector.
///
/// The collector takes what has no more references than it was shown. Each reference is therefore
/// shown once, by the object that goes last of all that use it. Nothing is ever cleared: native
/// objects do not change what they hold, and a cycle goes through something of Python's that can
/// be. The collector calls `__del__` beforehand, while what an object refers to is still whole; an
/// object that ends otherwise is not told, unless its class was derived in Python.
#pragma once

#include "gil.hpp"

#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

namespace tightship::bind {

constexpr const char *kCollectedSignature = "def __del__(self) -> None";

/// The native part of `self` where that owns it; null where it is not made yet, or another's.
template <class Native> Native *owned_by(PyObject *self) {
    const auto [is_ready, is_owned] = nanobind::inst_state(self);
    return is_ready && is_owned ? nanobind::inst_ptr<Native>(self) : nullptr;
}

/// Ends a reference to a Python object, by `drop`.
struct Dropping {
    PyObject *object;
    void operator()(const void *) const { drop(object); }
};

/// The Python object that `held` keeps alive; null where it keeps none.
inline PyObject *python_owner(const std::shared_ptr<const void> &held) {
    if (const auto *owner = std::get_deleter<nanobind::detail::py_deleter>(held))
        return owner->o;
    const auto *owner = std::get_deleter<Dropping>(held);
    return owner == nullptr ? nullptr : owner->object;
}

/// Another owner of what `given` owns, to go on any thread, without the GIL and while the
/// interpreter ends: nanobind's own aborts there. REQUIRES: the GIL is held.
template <class Native>
std::shared_ptr<Native> for_any_thread(const std::shared_ptr<Native> &given) {
    PyObject *object = python_owner(given);
    if (object == nullptr)
        return given;
    Py_INCREF(object);
    return std::shared_ptr<Native>(given.get(), Dropping{object});
}

inline int visit_held(const std::shared_ptr<const void> &held, visitproc visit, void *arg) {
    Py_VISIT(python_owner(held));
    return 0;
}

/// For a native object whose Python object is kept alive once, by `nb::keep_alive` or a list of
/// what is known.
template <class Native> int visit_object_of(const Native *native, visitproc visit, void *arg) {
    const nanobind::object object = nanobind::find(native);
    if (object.is_valid())
        Py_VISIT(object.ptr());
    return 0;
}

} // namespace tightship::bind
