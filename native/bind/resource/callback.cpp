#include "bind.hpp"
#include "count.hpp"
#include "held_callable.hpp"
#include "traverse.hpp"

#include "tightship/resource/adaptor/failing.hpp"
#include "tightship/resource/live_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::Freed;
using resource::LiveBlock;
using resource::MemoryResource;
using resource::Range;
using resource::Statistics;

/// Resource of Python functions. Their exceptions are refusals, or are written to stderr.
class CallbackResource final : public MemoryResource {
  public:
    CallbackResource(nb::callable allocate, nb::callable deallocate)
        : allocate_(std::move(allocate)), deallocate_(std::move(deallocate)) {}

    void *allocate(size_t size_bytes, size_t alignment) override {
        const size_t asked = std::max<size_t>(size_bytes, 1);
        void *pointer = call(asked, alignment);
        if (pointer == nullptr || live_.add(pointer, asked, alignment))
            return pointer;
        give_back(pointer, asked, alignment);
        return nullptr;
    }

    Freed deallocate(void *pointer, size_t size_bytes, size_t alignment) override {
        LiveBlock block;
        const size_t asked = std::max<size_t>(size_bytes, 1);
        const Freed freed = live_.remove(pointer, asked, alignment, block);
        if (freed == Freed::done)
            give_back(pointer, asked, alignment);
        return freed;
    }

    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(allocate_.get().ptr());
        Py_VISIT(deallocate_.get().ptr());
        return 0;
    }

    /// Marks the resource as garbage-collected, which may have cleared objects that the functions
    /// need.
    void collect() { is_collected_ = true; }

    Range range_of(const void *pointer) const override { return live_.range_of(pointer); }
    size_t size_of(const void *pointer) const override { return live_.size_of(pointer); }
    Statistics statistics() const override {
        const size_t bytes = live_.size_bytes();
        return {bytes, live_.count(), bytes, bytes};
    }
    size_t available_bytes() const override { return SIZE_MAX; }
    std::string refusal(size_t, size_t) const override {
        const std::string words = raised_.words();
        return words.empty() ? "the function gave no memory."
                             : "the function gave no memory; it raised last " + words;
    }

  private:
    void *call(size_t size_bytes, size_t alignment) {
        return with_gil([&]() -> void * {
            try {
                const auto address = nb::cast<uintptr_t>(allocate_.get()(size_bytes, alignment));
                if (address % alignment == 0)
                    return reinterpret_cast<void *>(address);
                deallocate_.get()(address, size_bytes, alignment);
            } catch (const nb::python_error &error) {
                raised_.note(error);
            } catch (const nb::cast_error &) {
            }
            return nullptr;
        });
    }

    void give_back(void *pointer, size_t size_bytes, size_t alignment) {
        with_gil([&] {
            try {
                if (deallocate_.is_taken_apart())
                    return;
                deallocate_.get()(reinterpret_cast<uintptr_t>(pointer), size_bytes, alignment);
            } catch (nb::python_error &error) {
                if (!is_collected_)
                    error.discard_as_unraisable(deallocate_.get());
            }
        });
    }

    std::atomic<bool> is_collected_ = false;
    HeldCallable allocate_, deallocate_;
    Raised raised_;
    resource::LiveBlocks live_;
};

using resource::FailureCallbackResource;

/// Retry by a Python function; if the function raises, the request is not retried.
struct Retry {
    HeldCallable function;

    bool operator()(size_t size_bytes) const {
        return with_gil([&] {
            try {
                return nb::cast<bool>(function.get()(size_bytes));
            } catch (nb::python_error &error) {
                error.discard_as_unraisable(function.get());
            } catch (const nb::cast_error &) {
            }
            return false;
        });
    }
};

int traverse_callback(PyObject *self, visitproc visit, void *arg) {
    if (const int stopped = traverse_resource(self, visit, arg))
        return stopped;
    const auto *resource = owned_by<CallbackResource>(self);
    return resource != nullptr ? resource->traverse(visit, arg) : 0;
}

void collect_callback(nb::handle self) {
    if (auto *resource = owned_by<CallbackResource>(self.ptr()))
        resource->collect();
}

int traverse_failure(PyObject *self, visitproc visit, void *arg) {
    if (const int stopped = traverse_resource(self, visit, arg))
        return stopped;
    if (const auto *resource = owned_by<FailureCallbackResource>(self))
        Py_VISIT(resource->callback().target<Retry>()->function.get().ptr());
    return 0;
}

PyType_Slot callback_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_callback)},
                                {0, nullptr}};
PyType_Slot failure_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_failure)},
                               {0, nullptr}};

} // namespace

void callback_resources(nb::module_ &module) {
    nb::class_<CallbackResource, MemoryResource>(module, "CallbackResource",
                                                 nb::type_slots(callback_slots),
                                                 "Blocks that Python functions allocate and free.")
        .def("__del__", collect_callback, nb::sig(kCollectedSignature))
        .def(nb::init<nb::callable, nb::callable>(), "allocate"_a, "deallocate"_a,
             nb::sig("def __init__(self, allocate: collections.abc.Callable[[int, int], int], "
                     "deallocate: collections.abc.Callable[[int, int, int], None]) -> None"),
             "Call `allocate(size_bytes, alignment)`, which returns an address, or 0 to refuse; "
             "an\nexception or an unaligned address is a refusal too. `deallocate(address, "
             "size_bytes,\nalignment)` frees it.");
    nb::class_<FailureCallbackResource, resource::Adaptor>(
        module, "FailureCallbackResource", nb::type_slots(failure_slots),
        "Repeats refused requests if a function says so.")
        .def(
            "__init__",
            [](FailureCallbackResource *self, std::shared_ptr<MemoryResource> upstream,
               nb::callable callback) {
                new (self) FailureCallbackResource(std::move(upstream),
                                                   Retry{HeldCallable(std::move(callback))});
            },
            "upstream"_a, "callback"_a,
            nb::sig("def __init__(self, upstream: MemoryResource, "
                    "callback: collections.abc.Callable[[int], bool]) -> None"),
            "Call `callback(size_bytes)` when memory is refused: True asks again, False (or "
            "an\nexception, which is written to standard error) lets the refusal stand.");
}

} // namespace tightship::bind
