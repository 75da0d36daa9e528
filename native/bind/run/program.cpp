#include "bind.hpp"
#include "running.hpp"
#include "traverse.hpp"

#include <algorithm>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using Address = std::pair<uint32_t, int64_t>;

Place place(Address address) {
    return {address.first, address.second};
}

using Ends = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::string run(Context &context, std::pair<size_t, size_t> steps, const StopFlag &stop,
                std::optional<int64_t> deadline_ns, std::optional<Ends> ends_ns) {
    if (ends_ns && ends_ns->shape(0) != steps.second - steps.first)
        throw std::invalid_argument("`ends_ns` needs one number for each step.");
    return name_of(
        run_steps(context, steps, stop, deadline_ns, ends_ns ? ends_ns->data() : nullptr));
}

/// Dependencies, with the state of one run at a time.
struct GraphRun {
    StepGraph graph;
    StepRun run;

    GraphRun(size_t first, size_t last, const std::vector<std::pair<int64_t, int64_t>> &edges,
             const std::vector<uint32_t> &order)
        : graph(first, last, checked(first, last, edges), permutation(last - first, order)),
          run(graph) {}
    GraphRun(const GraphRun &) = delete;
    GraphRun &operator=(const GraphRun &) = delete;

    static std::span<const std::pair<int64_t, int64_t>>
    checked(size_t first, size_t last, const std::vector<std::pair<int64_t, int64_t>> &edges) {
        for (const auto &[before, after] : edges)
            if (before < static_cast<int64_t>(first) || before >= after ||
                after >= static_cast<int64_t>(last))
                throw std::invalid_argument(
                    "An edge must lead from a step to a later one, both in [first, last).");
        return edges;
    }

    static std::span<const uint32_t> permutation(size_t count, const std::vector<uint32_t> &order) {
        std::vector<bool> found(count, false);
        for (const uint32_t step : order)
            if (step < count)
                found[step] = true;
        if (!order.empty() && (order.size() != count || std::ranges::count(found, false) > 0))
            throw std::invalid_argument("An order must have every step once, counted from 0.");
        return order;
    }
};

std::string run_at_once(Context &context, GraphRun &steps, int workers, const StopFlag &stop,
                        std::optional<int64_t> deadline_ns) {
    const std::function<void()> poll = check_signals;
    const GilReleased release;
    return name_of(context.run_at_once(steps.run, workers, {stop, time_of(deadline_ns), poll}));
}

using States = std::vector<std::tuple<uint32_t, uint32_t, uint32_t, int64_t, int64_t, int64_t>>;
using Parts = std::vector<
    std::tuple<uint32_t, uint32_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>>;
using Numbers = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool>;

uint32_t number_or_absent(int64_t given) {
    return given < 0 ? kAbsent : static_cast<uint32_t>(given);
}

std::vector<Slices> slices(const Parts &parts) {
    std::vector<Slices> made;
    for (const auto &[slot, operand, rows, row_bytes, stride, first, step, dense] : parts)
        made.push_back({slot, operand, rows, row_bytes, stride, first, step, dense});
    return made;
}

void add_control(Program &self,
                 const std::vector<std::vector<std::pair<uint32_t, uint32_t>>> &bound,
                 const States &states, const std::pair<Parts, Parts> &parts,
                 const std::vector<std::tuple<uint32_t, uint32_t, int64_t>> &kept,
                 const Numbers &numbers, const std::vector<Address> &operands) {
    Control control;
    for (size_t index = 0; index < bound.size(); ++index)
        control.bodies.push_back({self.body_count() - bound.size() + index, bound[index]});
    for (const auto &[input, output, initial, result, spare, size_bytes] : states)
        control.states.push_back(
            {input, output, initial, number_or_absent(result), spare, size_bytes});
    control.read = slices(parts.first);
    control.written = slices(parts.second);
    for (const auto &[source, result, size_bytes] : kept)
        control.kept.push_back({source, result, size_bytes});
    const auto &[most, count, condition, number, goes_on, next, offset, obeys] = numbers;
    control.most = most < 0 ? kUncounted : most;
    control.count = number_or_absent(count);
    control.condition = number_or_absent(condition);
    control.number_slot = number_or_absent(number);
    control.goes_on_slot = number_or_absent(goes_on);
    control.next_slot = number_or_absent(next);
    control.numbers = offset;
    control.obeys = obeys;
    std::vector<Place> places;
    for (const Address &operand : operands)
        places.push_back(place(operand));
    self.add_control(std::move(control), places);
}

#ifdef TIGHTSHIP_ONEDNN
using Argument = std::tuple<int, const onednn::MemoryDesc *, Address>;

void primitives(nb::class_<Program> &program) {
    program.def(
        "add_primitive",
        [](Program &self, const std::shared_ptr<onednn::PrimitiveDesc> &desc,
           const std::vector<Argument> &arguments) {
            std::vector<std::pair<int, uint32_t>> bound;
            for (const auto &[number, layout, address] : arguments)
                bound.emplace_back(number, self.primitives.operand(*layout, place(address)));
            self.primitives.add(for_any_thread(desc), bound); // `compile` releases it
            self.add_primitive();
        },
        "desc"_a, "arguments"_a, "Add a primitive; arguments are (number, layout, place).");
}
#endif

void fixed_operands(nb::module_ &module) {
    nb::class_<FixedOperands>(module, "FixedOperands",
                              "Addresses of arrays that are the same in many runs, by slot.")
        .def(
            "__init__",
            [](FixedOperands *self, const nb::typed<nb::dict, uint32_t, nb::any> &arrays) {
                FixedOperands made;
                for (const auto &[slot, array] : arrays)
                    made.add(nb::cast<uint32_t>(slot), first_byte(array));
                new (self) FixedOperands(std::move(made));
            },
            "arrays"_a, "Note C-contiguous arrays, which the caller keeps while they are bound.");
}

void native_context(nb::module_ &module) {
    nb::class_<Context>(module, "NativeContext", "Program bound to one arena.")
        .def(
            "__init__",
            [](Context *self, const Program &program, uintptr_t arena) {
                new (self) Context(program, reinterpret_cast<void *>(arena));
            },
            "program"_a, "arena_address"_a, nb::keep_alive<1, 2>())
        .def(
            "bind_external",
            [](Context &self, uint32_t slot, nb::handle array) {
                self.bind_external(slot, first_byte(array));
            },
            "slot"_a, "array"_a,
            "Bind a slot to a C-contiguous array, which the caller keeps until the run is over.")
        .def(
            "bind_fixed",
            [](Context &self, const FixedOperands *fixed) {
                if (fixed == nullptr)
                    self.forget_fixed();
                else
                    self.bind_fixed(*fixed);
            },
            "fixed"_a.none(),
            "Bind slots to arrays that stay where they are, unless the last call did; None "
            "forgets\nwhich these were.")
        .def("run", &run, "steps"_a, "stop"_a, "deadline_ns"_a = nb::none(),
             "ends_ns"_a = nb::none(),
             "Run steps [first, last), without the GIL unless they took less than 20 us the last "
             "time; return \"done\", \"stopped\" or \"deadline\".")
        .def("run_at_once", &run_at_once, "steps"_a, "workers"_a, "stop"_a,
             "deadline_ns"_a = nb::none(),
             "Run steps concurrently, each once those that it waits for have ended; otherwise like "
             "`run`.");
}

} // namespace

void program(nb::module_ &module) {
    nb::class_<Program> program(module, "NativeProgram",
                                "Program of kernels and primitives over planned bytes.");
#ifdef TIGHTSHIP_ONEDNN
    primitives(program);
#endif
    program.def(nb::init<>())
        .def(
            "add_kernel",
            [](Program &self, std::shared_ptr<Kernel> kernel,
               const std::vector<Address> &operands) {
                std::vector<Place> places;
                for (const Address &operand : operands)
                    places.push_back(place(operand));
                self.add_kernel(std::move(kernel), places);
            },
            "kernel"_a, "operands"_a)
        .def("add_body", &Program::add_body, nb::rv_policy::reference_internal,
             "Add a program for the next control step, and return it.")
        .def("add_control", &add_control, "bound"_a, "states"_a, "parts"_a, "kept"_a, "numbers"_a,
             "operands"_a,
             "Add a step that runs the bodies added last, as `ControlWork` describes it; the last\n"
             "operand is its scratch.\n\nArgs:\n    bound: Pairs of slot and operand, for each "
             "body.\n    states: Rows of `CarriedState`.\n    parts: Rows of `Slices` that are "
             "read, and that are written.\n    kept: Rows of `KeptValue`.\n    numbers: Fields of "
             "`Iterations` from `most` on.\n    operands: Space and offset of each operand.")
        .def("compile", &Program::compile, "threads"_a, nb::call_guard<GilReleased>())
        .def("defer", &Program::defer, "threads"_a,
             "Let each run obtain its primitives, instead of `compile`.")
        .def(
            "bind_weights",
            [](Program &self, uintptr_t base) {
                self.bind_weights(reinterpret_cast<void *>(base));
            },
            "address"_a)
        .def_prop_ro("step_count", &Program::step_count);
    nb::class_<GraphRun>(module, "NativeStepGraph",
                         "Dependencies between native steps, with the state of one run at a time.")
        .def(nb::init<size_t, size_t, const std::vector<std::pair<int64_t, int64_t>> &,
                      const std::vector<uint32_t> &>(),
             "first"_a, "last"_a, "edges"_a, "order"_a = std::vector<uint32_t>(),
             "Steps [first, last) with edges between them; of those that are ready, the first in\n"
             "`order`, which counts from 0, goes first.");
    fixed_operands(module);
    native_context(module);
}

} // namespace tightship::bind
