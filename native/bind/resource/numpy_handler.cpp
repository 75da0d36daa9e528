#include "numpy_handler.hpp"

namespace nb = nanobind;

namespace tightship::bind {

namespace {

constexpr size_t kSetHandler = 304; ///< of NumPy's C function table

} // namespace

nb::object set_numpy_handler(nb::handle handler) {
    using SetHandler = PyObject *(*)(PyObject *);
    nb::object module;
    try {
        module = nb::module_::import_("numpy._core._multiarray_umath");
    } catch (nb::python_error &) {
        module = nb::module_::import_("numpy.core._multiarray_umath");
    }
    const auto table = nb::cast<nb::capsule>(module.attr("_ARRAY_API"));
    const auto set = reinterpret_cast<SetHandler>(static_cast<void **>(table.data())[kSetHandler]);
    PyObject *before = set(handler.ptr());
    if (before == nullptr)
        throw nb::python_error();
    return nb::steal(before);
}

} // namespace tightship::bind
