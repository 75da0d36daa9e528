#include "tightship/sha256.hpp"
#include "bind.hpp"
#include "long_call.hpp"

#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace tightship::bind {

void sha256(nb::module_ &module) {
    using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    nb::class_<Sha256>(module, "Sha256", "SHA-256 of bytes that come in parts.")
        .def(nb::init<>())
        .def(
            "update",
            [](Sha256 &self, const Bytes &content) {
                call_long(content.nbytes(), [&] { self.update({content.data(), content.size()}); });
            },
            nb::arg("content"),
            nb::sig("def update(self, content: bytes | bytearray | memoryview | "
                    "NDArray[numpy.uint8]) -> None"),
            "Add bytes to those before.")
        .def(
            "digest",
            [](const Sha256 &self) {
                const auto found = self.digest();
                return nb::bytes(found.data(), found.size());
            },
            "Return the 32 bytes of the digest of all bytes so far.");
}

} // namespace tightship::bind
