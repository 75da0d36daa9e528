#include "tightship/run/sized_choice.hpp"

#include "bind.hpp"
#include "run/dynamic_scope.hpp"
#include "running.hpp"
#include "traverse.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using kernels::ElementType;
using kernels::SizedOperator;
using kernels::Tensor;
using enum ElementType;

using Operator = std::shared_ptr<const SizedOperator>;

/// Returns the type of elements that a buffer's format names; nothing if no kernel has it.
std::optional<ElementType> type_of(const Py_buffer &view) {
    if (view.format == nullptr || view.format[0] == 0 || view.format[1] != 0)
        return std::nullopt;
    const auto sized = [&view](ElementType first) { // of 1, 2, 4 or 8 bytes
        const int place = std::countr_zero(static_cast<uint64_t>(view.itemsize));
        return static_cast<ElementType>(static_cast<int>(first) + place);
    };
    switch (view.format[0]) {
    case '?':
        return kBool;
    case 'f':
        return kFloat32;
    case 'd':
        return kFloat64;
    case 'e':
        return kFloat16;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
        return sized(kInt8);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
        return sized(kUint8);
    default:
        return std::nullopt;
    }
}

/// Returns the elements of a C-contiguous array; a tensor without data for any other object.
Tensor tensor_of(nb::handle array) {
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return {};
    }
    Tensor made;
    if (const auto type = type_of(view); type && view.ndim <= int{Tensor::kRankMax}) {
        made.type = *type;
        made.rank = static_cast<uint8_t>(view.ndim);
        std::copy_n(view.shape, view.ndim, made.lengths.begin());
        made.data = static_cast<char *>(view.buf);
    }
    PyBuffer_Release(&view);
    return made;
}

/// Returns the elements of an array, which is kept as long as they are in use.
Tensor held_tensor_of(nb::handle array) {
    Tensor tensor = tensor_of(array);
    if (tensor.data == nullptr)
        return tensor;
    Py_INCREF(array.ptr());
    tensor.held = std::shared_ptr<const void>(tensor.data, Dropping{array.ptr()});
    return tensor;
}

bool set(SizedContext &self, uint32_t value, nb::handle array) {
    Tensor tensor = held_tensor_of(array);
    const bool is_held = tensor.data != nullptr;
    if (is_held)
        self.set(value, std::move(tensor));
    return is_held;
}

void bind(SizedContext &self, uint32_t value, nb::handle array) {
    Tensor tensor = tensor_of(array);
    if (tensor.data == nullptr)
        throw nb::value_error("a planned value has no C-contiguous array of numbers");
    self.bind(value, std::move(tensor));
}

nb::dlpack::dtype dtype_of(ElementType type) {
    using Code = nb::dlpack::dtype_code;
    const Code code = type == kBool              ? Code::Bool
                      : kernels::is_float(type)  ? Code::Float
                      : kernels::is_signed(type) ? Code::Int
                                                 : Code::UInt;
    return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * kernels::item_bytes(type)), 1};
}

/// Returns an array over the value's memory, which it keeps alive; None before it is computed.
nb::object get(const SizedContext &self, uint32_t value) {
    const Tensor &found = self.value(value);
    if (found.data == nullptr || found.held == nullptr)
        return nb::none();
    if (PyObject *const object = python_owner(found.held))
        if (Tensor own = tensor_of(object);
            own.data == found.data && own.rank == found.rank && own.lengths == found.lengths)
            return nb::borrow(object);
    using Held = std::shared_ptr<const void>;
    const nb::capsule owner(new Held(found.held),
                            [](void *held) noexcept { delete static_cast<Held *>(held); });
    std::array<size_t, Tensor::kRankMax> shape;
    std::copy_n(found.lengths.begin(), found.rank, shape.begin());
    return nb::cast(nb::ndarray<nb::numpy>(found.data, found.rank, shape.data(), owner, nullptr,
                                           dtype_of(found.type)));
}

std::pair<size_t, const char *> run(SizedContext &self, std::pair<size_t, size_t> steps,
                                    bool runs_planned, const StopFlag &stop,
                                    std::optional<int64_t> deadline_ns, const DynamicScope *memory,
                                    int threads) {
    const std::function<void()> poll = check_signals;
    const kernels::TensorRoom room(memory == nullptr ? nullptr : memory->memory());
    const GilReleased release;
    const auto [step, outcome] = self.run(steps.first, steps.second, runs_planned,
                                          {stop, time_of(deadline_ns), poll}, room, threads);
    return {step, name_of(outcome)};
}

void context(nb::module_ &module) {
    nb::class_<SizedContext>(module, "SizedContext",
                             "Values of one run at a time of a sized program.")
        .def(nb::init<const SizedProgram &, Context *>(), "program"_a, "planned"_a.none(),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("bind", &bind, "value"_a, "array"_a,
             "Give a value planned bytes: those of a C-contiguous array, which the caller keeps.")
        .def("set", &set, "value"_a, "array"_a,
             "Give a value an array, which is kept until its last reader has run; return whether "
             "it\nis a C-contiguous one of numbers.")
        .def("get", &get, "value"_a,
             "Return a value that is not planned; None if no step has computed it.")
        .def("release", &SizedContext::release, "step"_a,
             "Drop the values that no step after this one reads.")
        .def("clear", &SizedContext::clear, "Drop all values that are not planned.")
        .def("run", &run, "steps"_a, "runs_planned"_a, "stop"_a, "deadline_ns"_a.none(),
             "memory"_a.none(), "threads"_a,
             "Run steps [first, last) without the GIL, up to one that the caller has to run; "
             "return\nits place, or `last`, and \"done\", \"stopped\" or \"deadline\".");
}

uint32_t value_or_none(int64_t given) {
    if (given >= kNoValue)
        throw nb::value_error("a sized program has too many values");
    return given < 0 ? kNoValue : static_cast<uint32_t>(given);
}

using Branch = std::tuple<std::shared_ptr<SizedProgram>, std::vector<uint32_t>,
                          std::vector<uint32_t>, std::vector<std::pair<uint32_t, nb::object>>>;

SizedBranch branch_of(const Branch &given) {
    const auto &[program, captured, results, constants] = given;
    SizedBranch made{for_any_thread(program), captured, results, {}};
    for (const auto &[value, array] : constants) {
        made.constants.emplace_back(value, held_tensor_of(array));
        if (made.constants.back().second.data == nullptr)
            throw nb::value_error("a constant must be a C-contiguous array of numbers");
    }
    return made;
}

SizedProgram::Values values(const std::vector<int64_t> &given) {
    SizedProgram::Values made;
    for (const int64_t each : given)
        made.push_back(value_or_none(each));
    return made;
}

} // namespace

void sized_program(nb::module_ &module) {
    nb::class_<SizedOperator>(module, "SizedOperator",
                              "Operator on arrays whose shapes only the run knows.")
        .def_static(
            "of",
            [](std::string_view name, std::vector<int64_t> integers, std::vector<double> numbers) {
                return std::const_pointer_cast<SizedOperator>(
                    kernels::sized_operator(name, {std::move(integers), std::move(numbers)}));
            },
            "name"_a, "integers"_a = std::vector<int64_t>(), "numbers"_a = std::vector<double>(),
            nb::sig("def of(name: str, integers: Sequence[int] = ..., "
                    "numbers: Sequence[float] = ...) -> SizedOperator | None"),
            "Make an operator by its name and settings; None if there is none.")
        .def_static(
            "choice",
            [](const Branch &otherwise, const Branch &then, bool is_then_first) {
                return std::shared_ptr<SizedOperator>(std::make_shared<SizedChoice>(
                    branch_of(otherwise), branch_of(then), is_then_first));
            },
            "otherwise"_a, "then"_a, "is_then_first"_a,
            nb::sig("def choice(otherwise: tuple[SizedProgram, Sequence[int], Sequence[int], "
                    "Sequence[tuple[int, object]]], then: tuple[SizedProgram, Sequence[int], "
                    "Sequence[int], Sequence[tuple[int, object]]], is_then_first: bool) "
                    "-> SizedOperator"),
            "Make a choice by a condition, the first operand. Branches are programs, the values of "
            "their\ncaptures, which are the further operands, of their results, and of their "
            "constants with arrays.\nThe captures of the then branch come first or last.");
    module.def(
        "element_type",
        [](std::string_view name) {
            const auto found = kernels::element_type(name);
            return found ? static_cast<int>(*found) : -1;
        },
        "name"_a, "Return the number of an element type in settings; -1 for none.");
    nb::class_<SizedProgram>(module, "SizedProgram",
                             "Steps over numbered values, some of whose shapes only the run knows.")
        .def(nb::init<>())
        .def(
            "add",
            [](SizedProgram &self, std::shared_ptr<SizedOperator> computes,
               const std::vector<int64_t> &reads, const std::vector<int64_t> &writes,
               const std::vector<int64_t> &dying) {
                self.add(std::move(computes), values(reads), values(writes), values(dying));
            },
            "computes"_a.none(), "reads"_a, "writes"_a, "dying"_a,
            "Add a step of an operator, or of none if the caller runs it; -1 is an operand left "
            "out.")
        .def("reserve", &SizedProgram::reserve, "values"_a,
             "Make room for values that no step reads or writes.")
        .def("add_planned", &SizedProgram::add_planned, "first"_a, "last"_a,
             "Add a step that runs planned steps [first, last).");
    context(module);
}

} // namespace tightship::bind
