/// NumPy arrays in pools of a model, counted against a byte bound, while a scope is open.
#include "bind.hpp"
#include "count.hpp"
#include "long_call.hpp"
#include "run/dynamic_scope.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using primitive::DynamicMemory;
using primitive::DynamicPools;

DynamicMemory &memory_of(void *context) {
    return *static_cast<std::shared_ptr<DynamicMemory> *>(context)->get();
}

void *allocate(void *context, size_t size) {
    return call_long(size, [&] { return memory_of(context).allocate(size); });
}

void *allocate_zeroed(void *context, size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / size)
        return nullptr;
    return call_long(count * size, [&] { return memory_of(context).allocate(count * size, true); });
}

void *reallocate(void *context, void *pointer, size_t size) {
    return call_long(size, [&] { return memory_of(context).reallocate(pointer, size); });
}

void release(void *context, void *pointer, size_t size) {
    call_long(size, [&] { memory_of(context).give(pointer); });
}

nb::object handler_of(const std::shared_ptr<DynamicMemory> &memory) {
    return numpy_handler_capsule(
        {"tightship_dynamic", 1, nullptr, allocate, allocate_zeroed, reallocate, release}, memory);
}

} // namespace

DynamicScope::DynamicScope(std::shared_ptr<DynamicPools> pools, int64_t limit_bytes)
    : memory_(std::make_shared<DynamicMemory>(std::move(pools), limit_bytes)),
      scope_(handler_of(memory_)) {}

namespace {

void pools_of_models(nb::module_ &module) {
    nb::class_<DynamicPools>(
        module, "DynamicPools",
        "Pools of a model for arrays that its runs make outside the plan, reused by later runs.")
        .def(
            "__init__",
            [](DynamicPools *self, Count budget) {
                new (self) DynamicPools(at_least(0, "budget_bytes", budget));
            },
            "budget_bytes"_a, "Make pools of which free ones hold at most `budget_bytes`.")
        .def_prop_ro("pools", &DynamicPools::pools, "Manager of these pools, which counts them.")
        .def_prop_ro(
            "is_held", [](const DynamicPools &self) { return self.pools()->held_bytes() != 0; },
            "Return whether any pool is held, reserved or free.")
        .def("release_unused", &DynamicPools::release_unused,
             "Give all free pools back; return their bytes.");
}

} // namespace

void dynamic_memory(nb::module_ &module) {
    pools_of_models(module);
    nb::class_<DynamicScope>(
        module, "DynamicMemory",
        "Memory of a run outside its plan: arrays that a thread makes within `with` come from "
        "pools, small ones from the heap; one beyond the limit raises MemoryError.")
        .def(
            "__init__",
            [](DynamicScope *self, std::shared_ptr<DynamicPools> pools,
               std::optional<Count> limit) {
                const int64_t bytes = limit
                                          ? static_cast<int64_t>(at_least(0, "limit_bytes", *limit))
                                          : DynamicMemory::kNoLimit;
                new (self) DynamicScope(std::move(pools), bytes);
            },
            "pools"_a, "limit_bytes"_a = nb::none())
        .def("__enter__",
             [](nb::handle_t<DynamicScope> self) {
                 nb::cast<DynamicScope &>(self).enter();
                 return self;
             })
        .def(
            "__exit__", [](DynamicScope &self, const nb::args &) { self.leave(); },
            nb::sig("def __exit__(self, *args: object) -> None"))
        .def(
            "end", [](DynamicScope &self) { self.memory()->end(); },
            "End the run: arrays that are alive are the caller's.")
        .def_prop_ro(
            "live_bytes", [](const DynamicScope &self) { return self.memory()->live_bytes(); },
            "Bytes of arrays that are alive; counted only if there is a limit.")
        .def_prop_ro("peak_bytes",
                     [](const DynamicScope &self) { return self.memory()->peak_bytes(); })
        .def_prop_ro(
            "refused_bytes",
            [](const DynamicScope &self) { return self.memory()->refused_bytes(); },
            "Live bytes that there would have been with the last refused request, or 0.");
}

} // namespace tightship::bind
