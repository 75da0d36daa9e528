#include "numpy_handler.hpp"

namespace nb = nanobind;

namespace tightship::bind {

namespace {

constexpr size_t kSetHandler = 304; ///< of NumPy's C function table

} // namespace

void *numpy_function(size_t index) {
    nb::object module;
    try {
        module = nb::module_::import_("numpy._core._multiarray_umath");
    } catch (nb::python_error &) {
        module = nb::module_::import_("numpy.core._multiarray_umath");
    }
    const auto table = nb::cast<nb::capsule>(module.attr("_ARRAY_API"));
    return static_cast<void **>(table.data())[index];
}

nb::object set_numpy_handler(nb::handle handler) {
    using SetHandler = PyObject *(*)(PyObject *);
    const auto set = reinterpret_cast<SetHandler>(numpy_function(kSetHandler));
    PyObject *before = set(handler.ptr());
    if (before == nullptr)
        throw nb::python_error();
    return nb::steal(before);
}

} // namespace tightship::bind
