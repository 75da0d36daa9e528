/// Objects that Python functions returned and native code holds.
#pragma once

#include "gil.hpp"

#include <memory>
#include <nanobind/nanobind.h>
#include <unordered_set>

namespace tightship::bind {

/// Objects for the garbage collector to visit. Copies share the same objects. REQUIRES: the GIL is
/// held.
class ReturnedObjects {
  public:
    using Held = std::shared_ptr<PyObject>;

    /// Holds an object, which is dropped with the GIL, on any thread.
    Held hold(nanobind::object object) {
        state_->objects.insert(object.ptr());
        return Held(object.release().ptr(), [state = state_](PyObject *held) {
            if (!may_take_gil())
                return;
            with_gil([&] {
                state->objects.erase(state->objects.find(held));
                Py_DECREF(held);
            });
        });
    }

    int traverse(visitproc visit, void *arg) const {
        for (PyObject *object : state_->objects)
            Py_VISIT(object);
        return 0;
    }

    /// Marks the objects as garbage-collected, in no order: they must not be called any more.
    void collect() { state_->is_collected = true; }
    bool is_collected() const { return state_->is_collected; }

  private:
    struct State {
        std::unordered_multiset<PyObject *> objects;
        bool is_collected = false;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

} // namespace tightship::bind
