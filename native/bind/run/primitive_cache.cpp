#include "bind.hpp"

#ifdef TIGHTSHIP_ONEDNN

#include "count.hpp"
#include "running.hpp"
#include "tightship/run/stepwise.hpp"
#include "traverse.hpp"

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

using onednn::PrimitiveCache;
using Use = PrimitiveCache::Use;
using Upstream = std::shared_ptr<resource::MemoryResource>;

int traverse_use(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *use = owned_by<Use>(self);
    return use != nullptr
               ? visit_object_of(static_cast<const PrimitiveCache *>(use->cache()), visit, arg)
               : 0;
}

int traverse_cache(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *cache = owned_by<PrimitiveCache>(self);
    return cache != nullptr ? visit_held(cache->pools(), visit, arg) : 0;
}

int traverse_stepwise(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *stepwise = owned_by<Stepwise>(self);
    if (stepwise == nullptr)
        return 0;
    int stopped = visit_object_of(&stepwise->program(), visit, arg);
    if (stopped == 0)
        stopped = visit_object_of(&stepwise->cache(), visit, arg);
    stepwise->each_held([&](const std::shared_ptr<const void> &held) {
        if (stopped != 0)
            return;
        stopped = std::get_deleter<decltype(&drop)>(held) == nullptr
                      ? visit_held(held, visit, arg)
                      : visit(static_cast<PyObject *>(const_cast<void *>(held.get())), arg);
    });
    return stopped;
}

PyType_Slot use_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_use)}, {0, nullptr}};
PyType_Slot cache_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_cache)},
                             {0, nullptr}};
PyType_Slot stepwise_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_stepwise)},
                                {0, nullptr}};

void primitives(nb::module_ &module) {
    nb::class_<Use>(module, "CachedPrimitive", nb::type_slots(use_slots),
                    "Counted reference to a compiled primitive.")
        .def_prop_ro(
            "size_bytes", [](const Use &self) { return self->size_bytes(); },
            "Estimated bytes of its code and description.")
        .def_prop_ro("scratch_bytes", [](const Use &self) { return self->scratch_bytes(); })
        .def_prop_ro(
            "memory", [](const Use &self) -> primitive::MemoryManager & { return self->memory(); },
            nb::rv_policy::reference_internal, "Manager of its scratch, which is object 0.")
        .def(
            "is_same", [](const Use &self, const Use &other) { return &*self == &*other; },
            "other"_a, "Whether both are one compiled primitive.");
}

primitive::Capacity capacity_of(Count entries, Amount idle) {
    return {at_least(0, "entries", entries), at_least(0, "idle_bytes", idle)};
}

void cache(nb::module_ &module) {
    nb::class_<PrimitiveCache>(module, "PrimitiveCache", nb::type_slots(cache_slots),
                               "Cache of compiled primitives.")
        .def(
            "__init__",
            [](PrimitiveCache *self, Count entries, Amount idle,
               std::shared_ptr<primitive::PoolManager> pools, bool is_cached) {
                new (self) PrimitiveCache(capacity_of(entries, idle), std::move(pools),
                                          is_cached ? primitive::Keep::kCached
                                                    : primitive::Keep::kOnDemand);
            },
            "entries"_a, "idle_bytes"_a, "pools"_a, nb::kw_only(), "is_cached"_a = true,
            "Make a cache; `pools` and `is_cached` configure the primitives' memory managers.")
        .def(
            "obtain",
            [](PrimitiveCache &self, const onednn::PrimitiveDesc &desc, Count threads) {
                const auto count = static_cast<int>(at_least(1, "threads", threads));
                const GilReleased release;
                return self.obtain(desc, count);
            },
            "desc"_a, "threads"_a = 1, nb::keep_alive<0, 1>(),
            "Return the primitive of a description made for `threads`, compiled if needed.")
        .def_prop_ro(
            "entries", [](const PrimitiveCache &self) { return self.capacity().entries; },
            "Most primitives that it holds; 0 for none.")
        .def_prop_ro(
            "idle_bytes", [](const PrimitiveCache &self) { return self.capacity().idle_bytes; },
            "Most bytes of unused primitives.")
        .def(
            "set_capacity",
            [](PrimitiveCache &self, Count entries, Amount idle) {
                self.set_capacity(capacity_of(entries, idle));
            },
            "entries"_a, "idle_bytes"_a,
            "Set both limits; primitives beyond them are released at once.")
        .def("release_idle", &PrimitiveCache::release_idle,
             "Release unused primitives; return their estimated bytes.")
        .def_prop_ro("pools", &PrimitiveCache::pools)
        .def("statistics", &PrimitiveCache::statistics);
    module.def("primitive_cache", &PrimitiveCache::of_process, nb::rv_policy::reference,
               "Return the cache that all programs of the process share.");
}

/// First and last step, lifetimes, and the slot of each object.
using Group =
    std::tuple<size_t, size_t, std::shared_ptr<primitive::LifetimeManager>, std::vector<uint32_t>>;

std::vector<SlotGroup> groups_of(const std::vector<Group> &given) {
    std::vector<SlotGroup> groups;
    for (const auto &[first, last, lifetimes, slots] : given)
        groups.push_back({first, last, lifetimes, slots});
    return groups;
}

void stepwise(nb::module_ &module) {
    nb::class_<Stepwise>(module, "NativeStepwise", nb::type_slots(stepwise_slots),
                         "Deferred program that obtains primitives and memory for each call.")
        .def(
            "__init__",
            [](Stepwise *self, const Program &program, PrimitiveCache &cache, Upstream resource,
               const std::vector<Group> &groups, uint32_t scratch_slot) {
                new (self)
                    Stepwise(program, cache, std::move(resource), groups_of(groups), scratch_slot);
            },
            "program"_a, "cache"_a, "resource"_a, "groups"_a, "scratch_slot"_a,
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
            "Make a run; a group is first and last step, lifetimes, and the slot of each object.")
        .def(
            "bind_external",
            [](Stepwise &self, uint32_t slot, nb::handle array) {
                self.bind_external(slot, first_byte(array));
            },
            "slot"_a, "array"_a,
            "Bind a slot to a C-contiguous array, which the caller keeps until the run is over.")
        .def(
            "bind_persistent",
            [](Stepwise &self, uint32_t slot, nb::object array) {
                auto *data = static_cast<char *>(first_byte(array));
                const std::shared_ptr<const void> owner(array.release().ptr(), drop);
                self.bind_persistent(slot, {owner, data});
            },
            "slot"_a, "array"_a,
            "Bind a slot to an array that primitives own, and keep the array alive.")
        .def(
            "run",
            [](Stepwise &self, const StopFlag &stop, std::optional<int64_t> deadline_ns) {
                const std::function<void()> poll = check_signals;
                const GilReleased release;
                return std::string(name_of(self.run({stop, time_of(deadline_ns), poll})));
            },
            "stop"_a, "deadline_ns"_a = nb::none(),
            "Run every step without the GIL; return \"done\", \"stopped\" or \"deadline\".")
        .def_prop_ro(
            "memory_ns", [](const Stepwise &self) { return self.times().memory_ns; },
            "Time of the last run spent obtaining memory and giving it back.")
        .def_prop_ro(
            "primitives_ns", [](const Stepwise &self) { return self.times().primitives_ns; },
            "Time of the last run spent finding or compiling primitives.");
}

} // namespace

void primitive_cache(nb::module_ &module) {
    primitives(module);
    cache(module);
    stepwise(module);
}

} // namespace tightship::bind

#endif
