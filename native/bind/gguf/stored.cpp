#include "bind.hpp"
#include "tightship/gguf/block_parts.hpp"
#include "tightship/gguf/stored_texts.hpp"

#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace tightship::bind {

namespace {

using StoredBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using RoomBytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Returns the texts, or None if they are not there or one is not UTF-8.
nb::object texts_of(const StoredBytes &stored, size_t count) {
    nb::list found;
    const bool is_whole =
        gguf::each_text({stored.data(), stored.size()}, count, [&](std::string_view text) {
            PyObject *made =
                PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
            if (made == nullptr) {
                PyErr_Clear();
                return false;
            }
            found.append(nb::steal(made));
            return true;
        });
    return is_whole ? nb::object(found) : nb::none();
}

/// Returns the bytes of texts, or None if they are not there.
nb::object texts_end(const StoredBytes &stored, size_t count) {
    size_t size = 0;
    const bool is_whole =
        gguf::each_text({stored.data(), stored.size()}, count, [&](std::string_view text) {
            size += sizeof(uint64_t) + text.size();
            return true;
        });
    return is_whole ? nb::object(nb::int_(size)) : nb::none();
}

size_t blocks_of(const StoredBytes &blocks, const RoomBytes &room, size_t size, size_t made) {
    const size_t count = blocks.size() / size;
    if (blocks.size() != count * size || room.size() != count * made)
        throw nb::value_error("blocks and room do not fit each other");
    return count;
}

void take_integers(const StoredBytes &blocks, size_t bits, const RoomBytes &room) {
    if (bits != 4 && bits != 8)
        throw nb::value_error("integers have 4 or 8 bits");
    const size_t size = gguf::kBlock * bits / 8;
    const size_t count = blocks_of(blocks, room, gguf::kScaleBytes + size, size);
    (bits == 4 ? gguf::nibbles_of : gguf::bytes_of)(blocks.data(), count, room.data());
}

void take_scales(const StoredBytes &blocks, size_t bits, const RoomBytes &room) {
    if (bits != 4 && bits != 8)
        throw nb::value_error("integers have 4 or 8 bits");
    const size_t size = gguf::kScaleBytes + gguf::kBlock * bits / 8;
    const size_t count = blocks_of(blocks, room, size, gguf::kScaleBytes);
    gguf::scales_of(blocks.data(), bits, count, room.data());
}

} // namespace

void gguf_stored(nb::module_ &module) {
    module.def(
        "gguf_texts", &texts_of, nb::arg("stored"), nb::arg("count"),
        nb::sig("def gguf_texts(stored: bytes | memoryview, count: int) -> list[str] | None"),
        "Return texts of a GGUF file, each behind its length of 8 bytes; None if they are "
        "not there, or one is not UTF-8.");
    module.def("gguf_texts_bytes", &texts_end, nb::arg("stored"), nb::arg("count"),
               nb::sig("def gguf_texts_bytes(stored: bytes | memoryview, count: int) -> "
                       "int | None"),
               "Return the bytes that such texts take; None if they are not there.");
    module.def("gguf_integers", &take_integers, nb::arg("blocks"), nb::arg("bits"), nb::arg("room"),
               nb::sig("def gguf_integers(blocks: NDArray[numpy.uint8], bits: int, "
                       "room: NDArray[numpy.uint8]) -> None"),
               "Write the integers of blocks of Q4_0 (4 bits) or Q8_0 (8 bits) as unsigned ones, "
               "those of 4 bits with neighbours in a byte.");
    module.def("gguf_scales", &take_scales, nb::arg("blocks"), nb::arg("bits"), nb::arg("room"),
               nb::sig("def gguf_scales(blocks: NDArray[numpy.uint8], bits: int, "
                       "room: NDArray[numpy.uint8]) -> None"),
               "Write the bytes of the scales of such blocks.");
}

} // namespace tightship::bind
