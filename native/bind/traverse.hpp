/// References of bound objects, shown to Python's garbage collector.
///
/// The collector frees an object when all of its references were shown by objects that it frees as
/// well. Each reference is therefore shown once, by the last owner to be destroyed. No reference is
/// cleared, because native objects never change what they hold, and every cycle also passes through
/// an object of Python's that can be cleared. The collector calls `__del__` first, while everything
/// that an object refers to is still alive. An object freed by its reference count gets no such
/// call, unless its class was derived in Python.
#pragma once

#include "gil.hpp"

#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

namespace tightship::bind {

constexpr const char *kCollectedSignature = "def __del__(self) -> None";

/// Returns the native object that `self` owns; null if it is not constructed yet or has another
/// owner.
template <class Native> Native *owned_by(PyObject *self) {
    const auto [is_ready, is_owned] = nanobind::inst_state(self);
    return is_ready && is_owned ? nanobind::inst_ptr<Native>(self) : nullptr;
}

/// Deleter that ends a reference to a Python object, by `drop`.
struct Dropping {
    PyObject *object;
    void operator()(const void *) const { drop(object); }
};

/// Returns the Python object that `held` keeps alive; null if there is none.
inline PyObject *python_owner(const std::shared_ptr<const void> &held) {
    if (const auto *owner = std::get_deleter<nanobind::detail::py_deleter>(held))
        return owner->o;
    const auto *owner = std::get_deleter<Dropping>(held);
    return owner == nullptr ? nullptr : owner->object;
}

/// Makes another owner of the object of `given`, which may be destroyed on any thread, without the
/// GIL and while the interpreter ends: nanobind's own aborts there. REQUIRES: the GIL is held.
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

/// Visits the Python object of a native object that is kept alive once, by `nb::keep_alive` or by a
/// list of its owner's.
template <class Native> int visit_object_of(const Native *native, visitproc visit, void *arg) {
    const nanobind::object object = nanobind::find(native);
    if (object.is_valid())
        Py_VISIT(object.ptr());
    return 0;
}

} // namespace tightship::bind
