#include "bind.hpp"
#include "count.hpp"
#include "fields.hpp"
#include "gil.hpp"
#include "long_call.hpp"
#include "traverse.hpp"

#include "tightship/os/os.hpp"
#include "tightship/resource/memory_resource.hpp"
#include "tightship/resource/virtual/cuda_driver.hpp"

#include <algorithm>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <typeinfo>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::Freed;
using resource::MemoryResource;
using resource::Misuse;
using resource::Refused;
using resource::Statistics;
using resource::Unavailable;

using Addresses = nb::ndarray<nb::numpy, uint64_t, nb::ndim<1>>;
using GivenAddresses = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
static_assert(sizeof(uint64_t) == sizeof(void *));

/// Translates exceptions of resources into those of `tightship.errors`.
void translate(const std::exception_ptr &thrown, void *) {
    const char *name = "InputError";
    nb::object error;
    try {
        std::rethrow_exception(thrown);
    } catch (const Refused &refused) {
        name = "OutOfMemoryError";
        const bool is_known = refused.available_bytes != SIZE_MAX;
        error = nb::module_::import_("tightship.errors")
                    .attr(name)(refused.message, "requested_bytes"_a = refused.requested_bytes,
                                "available_bytes"_a =
                                    is_known ? static_cast<int64_t>(refused.available_bytes) : -1);
    } catch (const std::bad_alloc &refused) {
        name = "OutOfMemoryError";
        const bool is_described = typeid(refused) != typeid(std::bad_alloc);
        const std::string what =
            is_described ? refused.what() : "Tightship's own records do not fit: out of memory.";
        error = nb::module_::import_("tightship.errors")
                    .attr(name)(what + " Free some memory, or raise the process's limits.",
                                "requested_bytes"_a = -1);
    } catch (const Misuse &misuse) {
        error = nb::module_::import_("tightship.errors").attr(name)(misuse.what());
    } catch (const Unavailable &unavailable) {
        error = nb::module_::import_("tightship.errors").attr("LibraryError")(unavailable.what());
    }
    PyErr_SetObject(error.type().ptr(), error.ptr());
}

/// Returns why a block cannot be freed, to end a sentence that names its address.
std::string fault_of(const MemoryResource &self, Freed freed, const void *pointer,
                     size_t alignment) {
    switch (freed) {
    case Freed::foreign:
        return "the address does not belong to this resource.";
    case Freed::not_a_block:
        return "no block begins there.";
    case Freed::already_free:
        return "the block is already free.";
    case Freed::wrong_alignment:
        return "the block was not allocated with alignment " + std::to_string(alignment) +
               ". Give the alignment that it was allocated with.";
    case Freed::damaged:
        return "bytes beside it were written to; it stays live.";
    default:
        break;
    }
    const size_t size_bytes = self.size_of(pointer);
    if (size_bytes == 0)
        return "the block was allocated with another size.";
    const bool is_exact = self.supports_free();
    return std::string("the block there has ") + (is_exact ? "" : "at most ") +
           std::to_string(size_bytes) + " bytes. Give the size that it was allocated with.";
}

std::string hexadecimal(uint64_t address) {
    char text[32];
    std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(address));
    return text;
}

[[noreturn, gnu::noinline]] void refuse_size(const MemoryResource &self, Count size,
                                             size_t alignment) {
    if (size.value < 0)
        throw Misuse(shown("size_bytes", size) + " must be at least 0.");
    Refused refused(self, static_cast<size_t>(size.value), alignment);
    refused.message = std::string("Cannot allocate ") + nb::str(size.source).c_str() +
                      " bytes: no address space has more than 2**56.";
    throw refused;
}

/// Returns the bytes of a request, a number or a text.
size_t size_of(const MemoryResource &self, Amount size, size_t alignment) {
    if (PyUnicode_Check(size.source.ptr())) [[unlikely]]
        return at_least(0, "size_bytes", size);
    if (size.value < 0 || size.value > kSizeMax) [[unlikely]]
        refuse_size(self, size, alignment);
    return static_cast<size_t>(size.value);
}

uintptr_t allocate(MemoryResource &self, Amount size, Count alignment) {
    const size_t boundary = power_of_two("alignment", alignment);
    const size_t size_bytes = size_of(self, size, boundary);
    void *pointer = call_long(size_bytes, [&] { return self.allocate(size_bytes, boundary); });
    if (pointer == nullptr) [[unlikely]]
        throw Refused(self, size_bytes, boundary);
    return reinterpret_cast<uintptr_t>(pointer);
}

void deallocate(MemoryResource &self, uintptr_t address, Amount size, Count alignment) {
    const size_t boundary = power_of_two("alignment", alignment);
    const size_t size_bytes = at_least(0, "size_bytes", size);
    const Freed freed = call_long(size_bytes, [&] {
        return self.deallocate(reinterpret_cast<void *>(address), size_bytes, boundary);
    });
    if (freed != Freed::done) [[unlikely]]
        refuse_block(self, freed, {address, size_bytes, boundary});
}

/// Returns the bytes of `count` blocks, or the largest number if that overflows.
size_t many(size_t count, size_t size_bytes) {
    return size_bytes > SIZE_MAX / std::max<size_t>(count, 1) ? SIZE_MAX : count * size_bytes;
}

Addresses allocate_many(MemoryResource &self, Count count, Amount size, Count alignment) {
    const size_t boundary = power_of_two("alignment", alignment);
    const size_t size_bytes = size_of(self, size, boundary);
    const size_t asked = at_least(0, "count", count);
    auto *blocks = new uint64_t[asked];
    nb::capsule owner(blocks, [](void *held) noexcept { delete[] static_cast<uint64_t *>(held); });
    auto **pointers = reinterpret_cast<void **>(blocks);
    const size_t given = call_long(many(asked, size_bytes), [&] {
        return self.allocate_many(pointers, asked, size_bytes, boundary);
    });
    if (given < asked) {
        self.deallocate_many(pointers, given, size_bytes, boundary);
        Refused refused(self, size_bytes, boundary);
        refused.message = "Cannot allocate " + std::to_string(asked) + " blocks, only " +
                          std::to_string(given) + ". " + refused.message;
        throw refused;
    }
    return Addresses(blocks, {asked}, owner);
}

void deallocate_many(MemoryResource &self, GivenAddresses blocks, Amount size, Count alignment) {
    const size_t boundary = power_of_two("alignment", alignment);
    const size_t size_bytes = at_least(0, "size_bytes", size);
    auto *const *pointers = reinterpret_cast<void *const *>(blocks.data());
    const resource::FreedMany freed = call_long(many(blocks.size(), size_bytes), [&] {
        return self.deallocate_many(pointers, blocks.size(), size_bytes, boundary);
    });
    if (freed.fault != Freed::done)
        throw Misuse("Cannot deallocate every one of " + std::to_string(blocks.size()) +
                     " blocks of " + std::to_string(size_bytes) + " bytes; at " +
                     hexadecimal(reinterpret_cast<uintptr_t>(freed.block)) + ", " +
                     fault_of(self, freed.fault, freed.block, boundary));
}

void statistics_class(nb::module_ &module) {
    nb::class_<Statistics>(module, "ResourceStatistics",
                           "Counters of a memory resource; exact while no other call is in flight.")
        .def_ro("current_bytes", &Statistics::current_bytes,
                "Bytes of live blocks, as rounded by the resource.")
        .def_ro("current_count", &Statistics::current_count, "Number of live blocks.")
        .def_ro("reserved_bytes", &Statistics::reserved_bytes,
                "Bytes held to make blocks from, live blocks included.")
        .def_ro("touched_bytes", &Statistics::touched_bytes,
                "Held bytes that have ever been in blocks or between them.")
        .def("__repr__", &repr_of_fields);
}

void refuse_copies(nb::class_<MemoryResource> &base) {
    base.def("__copy__",
             [](nb::handle) { throw nb::type_error("A memory resource cannot be copied."); })
        .def("__deepcopy__",
             [](nb::handle, nb::handle) {
                 throw nb::type_error("A memory resource cannot be copied.");
             })
        .def(
            "__reduce_ex__",
            [](nb::handle, nb::handle) {
                throw nb::type_error("A memory resource cannot be pickled.");
            },
            nb::sig(kReduceSignature));
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse_resource)}, {0, nullptr}};

} // namespace

[[gnu::noinline]] void refuse_block(const MemoryResource &self, Freed freed, GivenBlock block) {
    const auto *pointer = reinterpret_cast<const void *>(block.address);
    throw Misuse("Cannot deallocate " + std::to_string(block.size_bytes) + " bytes at " +
                 hexadecimal(block.address) + ": " +
                 fault_of(self, freed, pointer, block.alignment));
}

int traverse_resource(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    int stopped = 0;
    if (const auto *resource = owned_by<MemoryResource>(self))
        resource->each_upstream([&](const auto &held) {
            stopped = stopped != 0 ? stopped : visit_held(held, visit, arg);
        });
    return stopped;
}

void resource(nb::module_ &module) {
    module.def(
        "release_code", &os::release_code, "path"_a,
        "Drop the resident pages of a loaded library's code; they are read again as they run.");
    module.def("release_heap", &os::release_heap, nb::call_guard<GilReleased>(),
               "Give whole free pages of the heap back to the system.");
    module.def("use_one_heap", &os::use_one_heap,
               "Make every thread allocate from one heap, whose free pages can all be given back; "
               "threads that have allocated already keep theirs.");
    nb::register_exception_translator(translate);
    statistics_class(module);
    nb::class_<MemoryResource> base(
        module, "MemoryResource", nb::type_slots(slots),
        "Allocates and frees blocks of memory, from any thread. Cannot be copied or pickled.");
    constexpr size_t alignment = resource::kDefaultAlignment;
    base.def("allocate", &allocate, "size_bytes"_a, "alignment"_a = alignment,
             "Return the address of `size_bytes` bytes or more, a multiple of "
             "`alignment`; 0 bytes have\nan address of their own.\n\nRaises OutOfMemoryError with "
             "the numbers, InputError for a size or "
             "an alignment that\nno resource serves.")
        .def("deallocate", &deallocate, "address"_a, "size_bytes"_a, "alignment"_a = alignment,
             "Free a block, given the size and alignment that it was allocated with.\n\nRaises "
             "InputError with the address and both sizes, and changes nothing, if no block "
             "of\nthat size begins there or the address is not a multiple of `alignment`.")
        .def("allocate_many", &allocate_many, "count"_a, "size_bytes"_a, "alignment"_a = alignment,
             "Return the addresses of `count` blocks; raises OutOfMemoryError and allocates none "
             "if one is refused.")
        .def("deallocate_many", &deallocate_many, "addresses"_a, "size_bytes"_a,
             "alignment"_a = alignment,
             "Free blocks; raises InputError if an address is not a block's, but frees the others.")
        .def(
            "owns",
            [](const MemoryResource &self, uintptr_t address) {
                return self.owns(reinterpret_cast<void *>(address));
            },
            "address"_a, "Whether the byte is in memory of this resource.")
        .def("trim", &MemoryResource::trim, nb::call_guard<GilReleased>(),
             "Give unused memory back upstream; return its bytes.")
        .def_prop_ro("supports_free", &MemoryResource::supports_free,
                     "Whether a freed block can be allocated again.")
        .def_prop_ro(
            "largest_bytes", [](const MemoryResource &self) { return self.reach().size_bytes; },
            "Bytes above which no request can ever be met; 2**64 - 1 if only the system knows.")
        .def("statistics", &MemoryResource::statistics)
        .def(
            "__eq__",
            [](const MemoryResource &self, nb::object other) {
                const MemoryResource *resource = nullptr;
                return nb::try_cast(other, resource) && resource != nullptr &&
                       self.is_equal(*resource);
            },
            nb::arg("other").none(),
            "Whether blocks of one resource may be freed through the other.")
        .def("__hash__",
             [](const MemoryResource &self) { return reinterpret_cast<uintptr_t>(&self) >> 4; });
    refuse_copies(base);
    resource_blocks(module, base);
    resource_kinds(module);
}

} // namespace tightship::bind
