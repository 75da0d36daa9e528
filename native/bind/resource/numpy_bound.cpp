/// NumPy arrays counted against a byte bound while a scope is open.
#include "bind.hpp"
#include "numpy_handler.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <memory>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

/// Byte bound of arrays: live_bytes <= limit_bytes at every return of an allocation.
class Bound {
  public:
    explicit Bound(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

    void *take(void *pointer) {
        if (pointer == nullptr)
            return nullptr;
        const auto size = static_cast<int64_t>(malloc_usable_size(pointer));
        const int64_t live = live_bytes_ += size;
        if (live > limit_bytes_) {
            refused_bytes_ = live;
            give(pointer);
            return nullptr;
        }
        if (live > peak_bytes_)
            peak_bytes_ = live;
        return pointer;
    }

    void give(void *pointer) {
        if (pointer != nullptr)
            live_bytes_ -= static_cast<int64_t>(malloc_usable_size(pointer));
        std::free(pointer);
    }

    /// Returns whether `size_bytes` more might fit, so that large requests are refused before
    /// memory is taken.
    bool admits(size_t size_bytes) {
        if (static_cast<uint64_t>(size_bytes) <= static_cast<uint64_t>(limit_bytes_ - live_bytes_))
            return true;
        refused_bytes_ = live_bytes_ + static_cast<int64_t>(size_bytes);
        return false;
    }

    int64_t live_bytes() const { return live_bytes_; }
    int64_t peak_bytes() const { return peak_bytes_; }
    int64_t refused_bytes() const { return refused_bytes_; }

  private:
    int64_t limit_bytes_;
    std::atomic<int64_t> live_bytes_{0}, peak_bytes_{0}, refused_bytes_{0};
};

Bound &bound_of(void *context) {
    return *static_cast<std::shared_ptr<Bound> *>(context)->get();
}

void *allocate(void *context, size_t size) {
    Bound &bound = bound_of(context);
    return bound.admits(size) ? bound.take(std::malloc(size)) : nullptr;
}

void *allocate_zeroed(void *context, size_t count, size_t size) {
    Bound &bound = bound_of(context);
    const bool overflows = size != 0 && count > SIZE_MAX / size;
    return !overflows && bound.admits(count * size) ? bound.take(std::calloc(count, size))
                                                    : nullptr;
}

void *reallocate(void *context, void *pointer, size_t size) {
    void *moved = allocate(context, size);
    if (moved != nullptr && pointer != nullptr) {
        std::memcpy(moved, pointer, std::min(size, malloc_usable_size(pointer)));
        bound_of(context).give(pointer);
    }
    return moved;
}

void release(void *context, void *pointer, size_t) {
    bound_of(context).give(pointer);
}

nb::object handler_of(const std::shared_ptr<Bound> &bound) {
    return numpy_handler_capsule(
        {"tightship_bound", 1, nullptr, allocate, allocate_zeroed, reallocate, release}, bound);
}

/// Scope in which the calling thread's new arrays count against the bound.
class NumpyBound {
  public:
    explicit NumpyBound(int64_t limit_bytes)
        : bound_(std::make_shared<Bound>(limit_bytes)), scope_(handler_of(bound_)) {}

    void enter() { scope_.enter(); }
    void leave() { scope_.leave(); }
    const Bound &bound() const { return *bound_; }

  private:
    std::shared_ptr<Bound> bound_;
    NumpyScope scope_;
};

} // namespace

void numpy_bound(nb::module_ &module) {
    nb::class_<NumpyBound>(
        module, "NumpyBound",
        "Bounds the arrays that a thread makes within `with`; one too large raises MemoryError.")
        .def(nb::init<int64_t>(), "limit_bytes"_a)
        .def("__enter__",
             [](nb::handle_t<NumpyBound> self) {
                 nb::cast<NumpyBound &>(self).enter();
                 return self;
             })
        .def(
            "__exit__", [](NumpyBound &self, const nb::args &) { self.leave(); },
            nb::sig("def __exit__(self, *args: object) -> None"))
        .def_prop_ro("live_bytes", [](const NumpyBound &self) { return self.bound().live_bytes(); })
        .def_prop_ro("peak_bytes", [](const NumpyBound &self) { return self.bound().peak_bytes(); })
        .def_prop_ro(
            "refused_bytes", [](const NumpyBound &self) { return self.bound().refused_bytes(); },
            "Live bytes that there would have been with the last refused request.");
}

} // namespace tightship::bind
