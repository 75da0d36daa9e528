/// Types of `_core` built without oneDNN: the same names, but no objects can be made, so that code
/// that names them needs no second version.
#include "bind.hpp"

#ifndef TIGHTSHIP_ONEDNN

#include <stdexcept>

namespace nb = nanobind;

namespace tightship::bind {

namespace {

struct LibraryError : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct MemoryDesc {};
struct Attributes {};
struct PrimitiveDesc {};
struct Reorderer {};
struct PrimitiveCache {};
struct Stepwise {};

} // namespace

void onednn(nb::module_ &module) {
    module.attr("HAS_ONEDNN") = false;
    module.def("onednn_is_open", [] { return false; });
    nb::exception<LibraryError>(module, "OneDnnLibraryError", PyExc_ImportError);
    nb::exception<Error>(module, "OneDnnError", PyExc_RuntimeError);
    nb::class_<MemoryDesc>(module, "MemoryDesc");
    nb::class_<Attributes>(module, "Attributes");
    nb::class_<PrimitiveDesc>(module, "PrimitiveDesc");
    nb::class_<Reorderer>(module, "Reorderer");
}

void primitive_cache(nb::module_ &module) {
    nb::class_<PrimitiveCache>(module, "PrimitiveCache");
    nb::class_<Stepwise>(module, "NativeStepwise");
}

} // namespace tightship::bind

#endif
