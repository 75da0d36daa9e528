#include "numpy_handler.hpp"

#include <atomic>

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
    // No local static: its lock could be waited for with the GIL, which the import gives up.
    static std::atomic<void *> known{nullptr};
    if (known == nullptr)
        known = numpy_function(kSetHandler);
    PyObject *before = reinterpret_cast<SetHandler>(known.load())(handler.ptr());
    if (before == nullptr)
        throw nb::python_error();
    return nb::steal(before);
}

} // namespace tightship::bind
