/// NumPy arrays in the blocks of a resource while a scope is open.
#include "bind.hpp"
#include "long_call.hpp"
#include "numpy_handler.hpp"
#include "traverse.hpp"

#include "tightship/resource/sized_blocks.hpp"

#include <algorithm>
#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::MemoryResource;
namespace sized = resource::sized;

MemoryResource &resource_of(void *context) {
    return *static_cast<std::shared_ptr<MemoryResource> *>(context)->get();
}

void *allocate(void *context, size_t size) {
    return call_long(size, [&] { return sized::allocate(resource_of(context), size); });
}

void *allocate_zeroed(void *context, size_t count, size_t size) {
    const size_t many = size > SIZE_MAX / std::max<size_t>(count, 1) ? SIZE_MAX : count * size;
    return call_long(many,
                     [&] { return sized::allocate_zeroed(resource_of(context), count, size); });
}

void *reallocate(void *context, void *pointer, size_t size) {
    return call_long(size, [&] { return sized::reallocate(resource_of(context), pointer, size); });
}

/// Frees a block by its own record, because NumPy's size may be wrong: an array's shape can be set.
void release(void *context, void *pointer, size_t size) {
    call_long(size, [&] { return sized::release(resource_of(context), pointer); });
}

nb::object handler_of(std::shared_ptr<MemoryResource> resource) {
    return numpy_handler_capsule(
        {"tightship", 1, nullptr, allocate, allocate_zeroed, reallocate, release},
        std::move(resource));
}

/// Shows the garbage collector the resource, if only the scope refers to its handler.
int traverse_scope(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *scope = owned_by<NumpyScope>(self);
    if (scope == nullptr)
        return 0;
    Py_VISIT(scope->before().ptr());
    Py_VISIT(scope->handler().ptr());
    if (Py_REFCNT(scope->handler().ptr()) > 1)
        return 0;
    const auto *handler = static_cast<const NumpyHandler *>(
        PyCapsule_GetPointer(scope->handler().ptr(), kNumpyHandlerName));
    return visit_held(*static_cast<std::shared_ptr<MemoryResource> *>(handler->context), visit,
                      arg);
}

PyType_Slot scope_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_scope)},
                             {0, nullptr}};

} // namespace

void numpy_resource(nb::module_ &module) {
    nb::class_<NumpyScope>(module, "NumpyScope", nb::type_slots(scope_slots),
                           "Makes a thread's arrays within `with` blocks of a resource.")
        .def(
            "__init__",
            [](NumpyScope *self, std::shared_ptr<MemoryResource> resource) {
                new (self) NumpyScope(handler_of(std::move(resource)));
            },
            "resource"_a)
        .def("__enter__", [](NumpyScope &self) { self.enter(); })
        .def(
            "__exit__", [](NumpyScope &self, const nb::args &) { self.leave(); },
            nb::sig("def __exit__(self, *args: object) -> None"));
}

} // namespace tightship::bind
