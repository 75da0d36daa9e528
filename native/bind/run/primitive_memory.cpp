#include "bind.hpp"
#include "count.hpp"
#include "fields.hpp"
#include "gil.hpp"
#include "traverse.hpp"

#include "tightship/primitive/built_once.hpp"
#include "tightship/primitive/memory.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using primitive::BlobLifetimeManager;
using primitive::CacheStatistics;
using primitive::Keep;
using primitive::LifetimeManager;
using primitive::MemoryManager;
using primitive::OffsetLifetimeManager;
using primitive::PoolManager;
using primitive::PoolStatistics;
using Upstream = std::shared_ptr<resource::MemoryResource>;

uint32_t object_of(Count object) {
    return static_cast<uint32_t>(std::min<size_t>(at_least(0, "object", object), UINT32_MAX));
}

/// Makes another reference to the Python object that keeps a resource alive.
Upstream own(const Upstream &resource) {
    return with_gil([&] { return for_any_thread(resource); });
}

/// Visits the resources whose blocks free and reserved pools hold.
int traverse_pools(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    int stopped = 0;
    if (const auto *pools = owned_by<PoolManager>(self))
        pools->each_resource([&](const resource::MemoryResource *resource) {
            stopped = stopped != 0 ? stopped : visit_object_of(resource, visit, arg);
        });
    return stopped;
}

/// Gives pools back, now and as they return, while the resources' functions can still be called.
void collect_pools(nb::handle self) {
    if (auto *pools = owned_by<PoolManager>(self.ptr()))
        pools->set_budget_bytes(0);
}

int traverse_manager(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *manager = owned_by<MemoryManager>(self);
    if (manager == nullptr)
        return 0;
    const int stopped = visit_held(manager->lifetimes(), visit, arg);
    return stopped != 0 ? stopped : visit_held(manager->pools(), visit, arg);
}

void collect_manager(nb::handle self) {
    if (auto *manager = owned_by<MemoryManager>(self.ptr()))
        manager->retire();
}

int traverse_run(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *run = owned_by<primitive::Resource>(self);
    return run != nullptr && run->is_held() ? visit_object_of(run->manager(), visit, arg) : 0;
}

PyType_Slot pools_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_pools)},
                             {0, nullptr}};
PyType_Slot manager_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_manager)},
                               {0, nullptr}};
PyType_Slot run_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_run)}, {0, nullptr}};

void lifetimes(nb::module_ &module) {
    nb::class_<LifetimeManager>(module, "LifetimeManager",
                                "Lifetimes of the temporaries of a primitive.")
        .def("start_lifetime", &LifetimeManager::start_lifetime,
             "Start the lifetime of a new object; return its number.")
        .def(
            "end_lifetime",
            [](LifetimeManager &self, Count object, Count size, Count alignment) {
                self.end_lifetime(object_of(object), {at_least(0, "size_bytes", size),
                                                      power_of_two("alignment", alignment)});
            },
            "object"_a, "size_bytes"_a, "alignment"_a = 64,
            "End the lifetime of an object; raises InputError unless it is alive.")
        .def_prop_ro("are_all_finalized", &LifetimeManager::are_all_finalized)
        .def_prop_ro(
            "size_bytes", [](const LifetimeManager &self) { return self.layout().size_bytes(); },
            "Bytes of a pool for all objects; raises InputError while one is alive.");
    nb::class_<BlobLifetimeManager, LifetimeManager>(
        module, "BlobLifetimeManager",
        "Lifetimes placed in as few regions as objects are alive at once.")
        .def(nb::init<>());
    nb::class_<OffsetLifetimeManager, LifetimeManager>(
        module, "OffsetLifetimeManager", "Lifetimes placed at planned offsets of one region.")
        .def(nb::init<>());
}

void pools(nb::module_ &module) {
    nb::class_<PoolStatistics>(module, "PoolStatistics",
                               "Counts and bytes of free and reserved pools.")
        .def_ro("free_count", &PoolStatistics::free_count)
        .def_ro("free_bytes", &PoolStatistics::free_bytes)
        .def_ro("reserved_count", &PoolStatistics::reserved_count)
        .def_ro("reserved_bytes", &PoolStatistics::reserved_bytes)
        .def_ro("peak_bytes", &PoolStatistics::peak_bytes,
                "Most bytes of free and reserved pools together.")
        .def_ro("created", &PoolStatistics::created)
        .def_ro("reused", &PoolStatistics::reused)
        .def_ro("trimmed", &PoolStatistics::trimmed, "Free pools that were given back.")
        .def("__repr__", &repr_of_fields);
    nb::class_<PoolManager>(module, "PoolManager", nb::type_slots(pools_slots),
                            "Manager of pools of temporaries, each free or reserved.")
        .def("__del__", collect_pools, nb::sig(kCollectedSignature))
        .def(
            "__init__",
            [](PoolManager *self, Count budget) {
                new (self) PoolManager(at_least(0, "budget_bytes", budget), own);
            },
            "budget_bytes"_a,
            "Make a manager whose free pools hold at most `budget_bytes`; 0 gives them back at "
            "once.")
        .def_prop_rw("budget_bytes", &PoolManager::budget_bytes,
                     [](PoolManager &self, Count budget) {
                         self.set_budget_bytes(at_least(0, "budget_bytes", budget));
                     })
        .def(
            "trim",
            [](PoolManager &self, Count budget) {
                return self.trim(at_least(0, "budget_bytes", budget));
            },
            "budget_bytes"_a = 0,
            "Give free pools back until they hold at most `budget_bytes`; return the bytes given "
            "back.")
        .def("statistics", &PoolManager::statistics);
}

void resources(nb::module_ &module) {
    nb::class_<primitive::Resource>(module, "PrimitiveResource", nb::type_slots(run_slots),
                                    "Memory of one run of a primitive.")
        .def_prop_ro("is_held", &primitive::Resource::is_held)
        .def_prop_ro("identity",
                     [](const primitive::Resource &self) {
                         if (!self.is_held())
                             throw resource::Misuse("The resource was destroyed.");
                         return self.identity();
                     })
        .def(
            "address",
            [](const primitive::Resource &self, Count object) {
                const size_t count = self.is_held() ? self.object_count() : 0;
                if (object_of(object) >= count)
                    throw resource::Misuse(shown("object", object) + " is not one of the " +
                                           std::to_string(count) + " objects of the resource.");
                return reinterpret_cast<uintptr_t>(self.address(object_of(object)));
            },
            "object"_a = 0, "Return the address of an object; raises InputError if it is unknown.");
}

void managers(nb::module_ &module) {
    nb::class_<MemoryManager>(module, "MemoryManager", nb::type_slots(manager_slots),
                              "Gives each run of a primitive the memory of its temporaries.")
        .def("__del__", collect_manager, nb::sig(kCollectedSignature))
        .def(
            "__init__",
            [](MemoryManager *self, std::shared_ptr<LifetimeManager> lifetimes,
               std::shared_ptr<PoolManager> pools, bool is_cached) {
                new (self) MemoryManager(std::move(lifetimes), std::move(pools),
                                         is_cached ? Keep::kCached : Keep::kOnDemand);
            },
            "lifetimes"_a, "pools"_a, nb::kw_only(), "is_cached"_a = true,
            "Make a manager; unless `is_cached`, a run's pool is given back when the run ends.")
        .def(
            "populate",
            [](MemoryManager &self, Upstream resource, Count count) {
                self.populate(resource, at_least(0, "count", count));
            },
            "resource"_a, "count"_a,
            "Make free pools for `count` runs, as far as the budget allows; all of these or none.")
        .def("clear", &MemoryManager::clear,
             "Give every pool back; raises InputError while one is reserved.")
        .def(
            "reserve_pools",
            [](MemoryManager &self, Upstream resource, Count count) {
                self.reserve_pools(resource, at_least(0, "count", count));
            },
            "resource"_a, "count"_a,
            "Reserve `count` further pools for this primitive; raises OutOfMemoryError and "
            "reserves none if one is refused.")
        .def(
            "unreserve_pools",
            [](MemoryManager &self, Count count) {
                self.unreserve_pools(at_least(0, "count", count));
            },
            "count"_a,
            "Return `count` reserved pools; raises InputError and returns none if fewer are "
            "reserved.")
        .def_prop_ro("reserved_count", &MemoryManager::reserved_count,
                     "Pools that are reserved and not in use.")
        .def("create_resource", &MemoryManager::create_resource, "resource"_a,
             nb::keep_alive<0, 1>(), "Take a pool for one run.")
        .def(
            "destroy_resource",
            [](MemoryManager &self, primitive::Resource &held) { self.destroy_resource(held); },
            "held"_a, "End a run; raises InputError if the resource is another manager's.");
}

void statistics(nb::module_ &module) {
    nb::class_<CacheStatistics>(module, "PrimitiveCacheStatistics",
                                "Counters; hits + waits + misses are the calls of `obtain`.")
        .def_ro("hits", &CacheStatistics::hits)
        .def_ro("waits", &CacheStatistics::waits,
                "Calls that waited for another thread to compile the primitive.")
        .def_ro("misses", &CacheStatistics::misses, "Calls that compiled the primitive.")
        .def_ro("failures", &CacheStatistics::failures, "Misses whose compilation failed.")
        .def_ro("evictions", &CacheStatistics::evictions)
        .def_ro("entries", &CacheStatistics::entries, "Primitives held now.")
        .def_ro("bytes", &CacheStatistics::bytes, "Estimated bytes of the entries.")
        .def_ro("idle_entries", &CacheStatistics::idle_entries, "Primitives held but not used.")
        .def_ro("idle_bytes", &CacheStatistics::idle_bytes, "Estimated bytes of unused primitives.")
        .def("__repr__", &repr_of_fields);
}

} // namespace

void primitive_memory(nb::module_ &module) {
    statistics(module);
    lifetimes(module);
    pools(module);
    resources(module);
    managers(module);
}

} // namespace tightship::bind
