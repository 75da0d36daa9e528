#include "bind.hpp"

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/program.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace tightship::onednn;

namespace tightship::bind {

namespace {

using Address = std::pair<uint32_t, int64_t>;
using Clock = std::chrono::steady_clock;

Place place(Address address) {
    return {address.first, address.second};
}

std::string run(Context &context, std::pair<size_t, size_t> steps, const StopFlag &stop,
                std::optional<int64_t> deadline_ns) {
    std::optional<Clock::time_point> deadline;
    if (deadline_ns)
        deadline = Clock::time_point(std::chrono::nanoseconds(*deadline_ns));
    const auto poll = [] {
        const nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals() != 0)
            throw nb::python_error();
    };
    const nb::gil_scoped_release release;
    switch (context.run(steps.first, steps.second, stop, deadline, poll)) {
    case Outcome::kStopped:
        return "stopped";
    case Outcome::kDeadline:
        return "deadline";
    case Outcome::kDone:
        break;
    }
    return "done";
}

} // namespace

void program(nb::module_ &module) {
    nb::class_<Program>(module, "NativeProgram", "Primitives and copies over planned bytes.")
        .def(nb::init<>())
        .def(
            "operand",
            [](Program &self, const MemoryDesc &desc, Address address) {
                return self.operand(desc, place(address));
            },
            "desc"_a, "place"_a)
        .def(
            "add_primitive",
            [](Program &self, std::shared_ptr<PrimitiveDesc> desc,
               const std::vector<std::pair<int, uint32_t>> &arguments) {
                self.add_primitive(std::move(desc), arguments);
            },
            "desc"_a, "arguments"_a)
        .def(
            "add_copy",
            [](Program &self, Address from, Address to, int64_t size_bytes) {
                self.add_copy(place(from), place(to), size_bytes);
            },
            "from_place"_a, "to_place"_a, "size_bytes"_a)
        .def("compile", &Program::compile, "threads"_a, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "bind_weights",
            [](Program &self, uintptr_t base) {
                self.bind_weights(reinterpret_cast<void *>(base));
            },
            "address"_a)
        .def_prop_ro("step_count", &Program::step_count);
    nb::class_<Context>(module, "NativeContext", "A program bound to one arena.")
        .def(
            "__init__",
            [](Context *self, const Program &program, uintptr_t arena) {
                new (self) Context(program, reinterpret_cast<void *>(arena));
            },
            "program"_a, "arena_address"_a, nb::keep_alive<1, 2>())
        .def(
            "bind_external",
            [](Context &self, uint32_t slot, uintptr_t address) {
                self.bind_external(slot, reinterpret_cast<void *>(address));
            },
            "slot"_a, "address"_a)
        .def("run", &run, "steps"_a, "stop"_a, "deadline_ns"_a = nb::none(),
             "Runs steps [first, last) without the GIL; \"done\", \"stopped\" or \"deadline\".");
    module.def(
        "set_onednn_threads", [](int count) { Library::get().set_threads(count); }, "count"_a,
        "Threads of primitives that the calling thread describes from now on.");
    module.def("onednn_threads", [] { return Library::get().threads(); });
}

} // namespace tightship::bind

#endif
