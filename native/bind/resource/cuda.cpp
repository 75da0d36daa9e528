#include "bind.hpp"
#include "count.hpp"

#include "tightship/resource/virtual/cuda_stream.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

using resource::CudaDevice;
using resource::CudaStream;
using resource::PagedDevice;
using resource::Stream;

int ordinal_of(Count ordinal) {
    const size_t given = at_least(0, "ordinal", ordinal);
    if (given > INT_MAX)
        throw resource::Misuse(shown("ordinal", ordinal) + " must be the number of a device.");
    return static_cast<int>(given);
}

} // namespace

void cuda_resources(nb::module_ &module) {
    nb::class_<CudaDevice, PagedDevice>(
        module, "CudaDevice", "Chunks of a CUDA device's memory, at addresses of its driver.")
        .def(
            "__init__",
            [](CudaDevice *self, Count ordinal, const std::optional<std::string> &driver) {
                new (self) CudaDevice(ordinal_of(ordinal), driver.value_or(""));
            },
            "ordinal"_a = 0, "driver_library"_a = nb::none(),
            "Open a device. The driver is `driver_library`, else "
            "`TIGHTSHIP_CUDA_DRIVER_LIBRARY`,\nelse the system's. Raises LibraryError if the "
            "driver is missing, or lacks the device.")
        .def_prop_ro("total_bytes", &CudaDevice::total_bytes, "Bytes of the device's memory.");
    nb::class_<CudaStream, Stream>(module, "CudaStream", "CUDA stream made elsewhere.")
        .def(
            "__init__",
            [](CudaStream *self, const CudaDevice &device, uintptr_t handle) {
                if (handle == resource::cuda::kPerThreadStream)
                    throw resource::Misuse("`handle` (= 2) is each thread's own stream, another "
                                           "one in each; make a stream and give its handle.");
                new (self) CudaStream(device.context(),
                                      reinterpret_cast<resource::cuda::StreamHandle>(handle));
            },
            "device"_a, "handle"_a = 0,
            "Wrap the CUstream `handle`, 0 for the default one; it must outlive this object.");
    cuda_pools(module);
}

} // namespace tightship::bind
