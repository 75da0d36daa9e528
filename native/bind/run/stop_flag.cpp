#include "bind.hpp"

#include "tightship/stop_flag.hpp"

namespace nb = nanobind;

namespace tightship::bind {

void stop_flag(nb::module_ &module) {
    nb::class_<StopFlag>(module, "StopFlag",
                         "Flag that any thread sets to end a run between two steps.")
        .def("__init__", [](StopFlag *self) { new (self) StopFlag(false); })
        .def("set", [](StopFlag &self) { self = true; })
        .def("clear", [](StopFlag &self) { self = false; })
        .def("is_set", [](const StopFlag &self) { return self.load(); });
}

} // namespace tightship::bind
