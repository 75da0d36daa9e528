#include "block.hpp"
#include "bind.hpp"
#include "count.hpp"
#include "traverse.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::MemoryResource;

std::unique_ptr<Block> allocate_block(std::shared_ptr<MemoryResource> self, Amount size,
                                      Count alignment) {
    const size_t boundary = power_of_two("alignment", alignment);
    if (PyUnicode_Check(size.source.ptr()))
        return std::make_unique<Block>(std::move(self), at_least(0, "size_bytes", size), boundary);
    if (size.value < 0 || size.value > kSizeMax) {
        resource::Refused refused(*self, static_cast<size_t>(size.value), boundary);
        refused.message = std::string("Cannot allocate ") + nb::str(size.source).c_str() +
                          " bytes: a block has from 0 to 2**56.";
        if (size.value < 0)
            throw resource::Misuse(refused.message);
        throw refused;
    }
    return std::make_unique<Block>(std::move(self), static_cast<size_t>(size.value), boundary);
}

auto array(nb::handle_t<Block> self) {
    const auto &block = nb::cast<const Block &>(self);
    return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(block.pointer(), {block.size_bytes()},
                                                        self);
}

nb::dict array_interface(const Block &self) {
    nb::dict described;
    described["version"] = 3;
    described["data"] = nb::make_tuple(self.address(), false);
    described["shape"] = nb::make_tuple(self.size_bytes());
    described["typestr"] = "|u1";
    return described;
}

int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    const auto &block = nb::cast<const Block &>(nb::handle(self));
    return PyBuffer_FillInfo(view, self, block.pointer(),
                             static_cast<Py_ssize_t>(block.size_bytes()), 0, flags);
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *block = owned_by<Block>(self);
    return block != nullptr ? visit_held(block->resource(), visit, arg) : 0;
}

PyType_Slot block_slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse)},
                             {Py_bf_getbuffer, reinterpret_cast<void *>(get_buffer)},
                             {0, nullptr}};

} // namespace

void resource_blocks(nb::module_ &module, nb::class_<MemoryResource> &base) {
    base.def("allocate_block", &allocate_block, "size_bytes"_a,
             "alignment"_a = resource::kDefaultAlignment,
             "Allocate a block that is given back when the last view of it dies.\n\nRaises as "
             "`allocate` does; a block may have 0 bytes.");
    nb::class_<Block>(module, "Block", nb::type_slots(block_slots),
                      "Block of a memory resource, given back when the last view of it dies.")
        .def_prop_ro("address", &Block::address)
        .def_prop_ro("size_bytes", &Block::size_bytes)
        .def_prop_ro("resource", &Block::resource)
        .def_prop_ro("__array_interface__", &array_interface,
                     nb::sig("def __array_interface__(self) -> dict[str, object]"))
        .def("array", &array, "Return the bytes as a uint8 array that keeps the block alive.")
        .def(
            "__dlpack__",
            [](nb::handle_t<Block> self, nb::kwargs options) {
                return nb::cast(array(self)).attr("__dlpack__")(**options);
            },
            nb::sig("def __dlpack__(self, **options: object) -> object"))
        .def("__dlpack_device__", [](const Block &) { return std::pair(1, 0); })
        .def("__len__", &Block::size_bytes)
        .def(
            "__reduce_ex__",
            [](nb::handle, nb::handle) { throw nb::type_error("A block cannot be pickled."); },
            nb::sig(kReduceSignature))
        .def("__copy__", [](nb::handle) { throw nb::type_error("A block cannot be copied."); })
        .def("__deepcopy__",
             [](nb::handle, nb::handle) { throw nb::type_error("A block cannot be copied."); });
}

} // namespace tightship::bind
