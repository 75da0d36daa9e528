/// NumPy arrays of every thread in the blocks of a resource.
///
/// A thread without a handler of its own allocates by NumPy's default one, which its context
/// variable refers to as a capsule. From the first use on, that capsule leads here for good: arrays
/// that were made before are freed by the functions that NumPy had there, and so is whatever no
/// scope asks for. Arrays of a scope are told apart by their addresses.
#include "bind.hpp"
#include "long_call.hpp"
#include "numpy_handler.hpp"
#include "traverse.hpp"

#include "tightship/resource/memory_resource.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <nanobind/stl/shared_ptr.h>
#include <unordered_set>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::MemoryResource;
using Held = std::shared_ptr<MemoryResource>;

constexpr size_t kDefaultHandler = 306; ///< of NumPy's C table: the address of a variable
constexpr size_t kAlignment = 64;

/// Record before an array's bytes: what it takes to free them.
struct Head {
    size_t size_bytes;
    Held resource;
};
static_assert(sizeof(Head) <= kAlignment);

/// Addresses of the live arrays of scopes. No lock is held while a resource is called.
class Addresses {
  public:
    /// Returns false if memory for the record is lacking.
    bool add(void *pointer) {
        Part &part = part_of(pointer);
        const std::scoped_lock lock(part.mutex);
        try {
            part.found.insert(pointer);
        } catch (const std::bad_alloc &) {
            return false;
        }
        return true;
    }

    /// Returns whether it was there.
    bool remove(void *pointer) {
        if (!is_aligned(pointer))
            return false;
        Part &part = part_of(pointer);
        const std::scoped_lock lock(part.mutex);
        return part.found.erase(pointer) != 0;
    }

    bool has(void *pointer) {
        if (!is_aligned(pointer))
            return false;
        Part &part = part_of(pointer);
        const std::scoped_lock lock(part.mutex);
        return part.found.contains(pointer);
    }

  private:
    struct Part {
        std::mutex mutex;
        std::unordered_set<void *> found;
    };

    static bool is_aligned(void *pointer) {
        return reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0;
    }
    Part &part_of(void *pointer) {
        const auto block = reinterpret_cast<uintptr_t>(pointer) / kAlignment;
        return parts_[block * 0x9E3779B97F4A7C15 >> 58];
    }

    std::array<Part, 64> parts_;
};

/// Source of the process's arrays: that of the last scope that is open, or NumPy's own.
struct State {
    NumpyHandler *original = nullptr; ///< set once, before the capsule leads here
    Addresses arrays;
    std::mutex mutex;
    std::vector<std::pair<const void *, Held>> open; ///< scopes with their resources, last one last

    Held current() {
        const std::scoped_lock lock(mutex);
        return open.empty() ? nullptr : open.back().second;
    }
};

/// The process's state, which is never destroyed: arrays may be freed at its very end.
State &state() {
    static State &made = *new State;
    return made;
}

Head *head_of(void *pointer) {
    return reinterpret_cast<Head *>(static_cast<char *>(pointer) - kAlignment);
}

void *allocate_of(const Held &resource, size_t size) {
    if (size > SIZE_MAX - kAlignment)
        return nullptr;
    void *block =
        call_long(size, [&] { return resource->allocate(size + kAlignment, kAlignment); });
    if (block == nullptr)
        return nullptr;
    void *pointer = static_cast<char *>(block) + kAlignment;
    if (!state().arrays.add(pointer)) {
        resource->deallocate(block, size + kAlignment, kAlignment);
        return nullptr;
    }
    new (block) Head{size, resource};
    return pointer;
}

/// Gives an array back to the resource in its head, after its address was removed from the record.
void release_of(void *pointer) {
    Head *head = head_of(pointer);
    const size_t size = head->size_bytes;
    const Held resource = std::move(head->resource);
    head->~Head();
    call_long(size, [&] { return resource->deallocate(head, size + kAlignment, kAlignment); });
}

void *allocate(void *, size_t size) {
    if (const Held resource = state().current())
        return allocate_of(resource, size);
    NumpyHandler &original = *state().original;
    return original.allocate(original.context, size);
}

void *allocate_zeroed(void *, size_t count, size_t size) {
    const Held resource = state().current();
    if (resource == nullptr) {
        NumpyHandler &original = *state().original;
        return original.allocate_zeroed(original.context, count, size);
    }
    if (size != 0 && count > SIZE_MAX / size)
        return nullptr;
    void *pointer = allocate_of(resource, count * size);
    if (pointer != nullptr)
        call_long(count * size, [&] { return std::memset(pointer, 0, count * size); });
    return pointer;
}

void release(void *, void *pointer, size_t size) {
    if (pointer == nullptr)
        return;
    if (state().arrays.remove(pointer))
        return release_of(pointer);
    NumpyHandler &original = *state().original;
    original.release(original.context, pointer, size);
}

void *reallocate(void *context, void *pointer, size_t size) {
    if (pointer == nullptr)
        return allocate(context, size);
    if (!state().arrays.has(pointer)) {
        NumpyHandler &original = *state().original;
        return original.reallocate(original.context, pointer, size);
    }
    const Head &head = *head_of(pointer);
    void *moved = allocate_of(head.resource, size);
    if (moved == nullptr)
        return nullptr;
    const size_t kept = std::min(size, head.size_bytes);
    call_long(kept, [&] { return std::memcpy(moved, pointer, kept); });
    state().arrays.remove(pointer);
    release_of(pointer);
    return moved;
}

/// Leads NumPy's default handler here, at the first call.
void install() {
    if (state().original != nullptr)
        return;
    PyObject *capsule = *static_cast<PyObject **>(numpy_function(kDefaultHandler));
    auto *original = static_cast<NumpyHandler *>(PyCapsule_GetPointer(capsule, kNumpyHandlerName));
    if (original == nullptr)
        throw nb::python_error();
    static NumpyHandler handler{"tightship",     1,          nullptr, allocate,
                                allocate_zeroed, reallocate, release};
    state().original = original;
    if (PyCapsule_SetPointer(capsule, &handler) != 0)
        throw nb::python_error();
}

/// Scope in which the arrays of threads without a handler of their own are blocks of a resource.
/// Nests; scopes may end in any order.
class NumpyThreadsScope {
  public:
    explicit NumpyThreadsScope(const Held &resource) : resource_(for_any_thread(resource)) {}
    ~NumpyThreadsScope() {
        while (leave()) {
        }
    }
    NumpyThreadsScope(const NumpyThreadsScope &) = delete;
    NumpyThreadsScope &operator=(const NumpyThreadsScope &) = delete;

    void enter() {
        install();
        const std::scoped_lock lock(state().mutex);
        state().open.emplace_back(this, resource_);
    }

    /// Ends the last entry of this scope; returns whether there was one.
    bool leave() {
        Held ended; // outlives the lock, as its end may run anything
        const std::scoped_lock lock(state().mutex);
        auto &open = state().open;
        for (size_t index = open.size(); index-- > 0;)
            if (open[index].first == this) {
                ended = std::move(open[index].second);
                open.erase(open.begin() + static_cast<ptrdiff_t>(index));
                return true;
            }
        return false;
    }

    const Held &resource() const { return resource_; }

  private:
    Held resource_;
};

int traverse_scope(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *scope = owned_by<NumpyThreadsScope>(self);
    if (scope == nullptr || scope->resource().use_count() > 1) // shown by the last owner alone
        return 0;
    return visit_held(scope->resource(), visit, arg);
}

PyType_Slot scope_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_scope)},
                             {0, nullptr}};

} // namespace

void numpy_threads(nb::module_ &module) {
    nb::class_<NumpyThreadsScope>(module, "NumpyThreadsScope", nb::type_slots(scope_slots),
                                  "Makes the arrays of all threads within `with` blocks of a "
                                  "resource, but for threads in another scope.")
        .def(nb::init<const Held &>(), "resource"_a)
        .def("__enter__", &NumpyThreadsScope::enter)
        .def(
            "__exit__", [](NumpyThreadsScope &self, const nb::args &) { self.leave(); },
            nb::sig("def __exit__(self, *args: object) -> None"));
}

} // namespace tightship::bind
