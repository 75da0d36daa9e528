#include "bind.hpp"
#include "count.hpp"

#include "tightship/resource/virtual/cuda_pools.hpp"

#include <cstdio>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <sys/types.h>

#define TIGHTSHIP_EXPORTED extern "C" __attribute__((visibility("default")))

namespace nb = nanobind;
using namespace nb::literals;

using tightship::resource::CudaPools;
using tightship::resource::Freed;
using tightship::resource::cuda::StreamHandle;

namespace {

/// Reports errors to stderr, because callers that free memory, often at exit, cannot handle them.
void give_back(const void *pointer, auto deallocate) noexcept {
    try {
        if (pointer == nullptr || deallocate() == Freed::done)
            return;
    } catch (const std::exception &) { // the device does not exist
    }
    std::fprintf(stderr, "tightship: %p is not a block of a CUDA pool, or not of that size.\n",
                 pointer);
}

void *quiet(auto allocate) noexcept {
    try {
        return allocate();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "tightship: %s\n", error.what());
        return nullptr;
    }
}

} // namespace

/// Allocates for callers in C++: throws with the numbers if memory is refused.
TIGHTSHIP_EXPORTED void *tightship_torch_allocate(ssize_t size_bytes, int device,
                                                  StreamHandle stream) {
    if (size_bytes < 0)
        throw tightship::resource::Misuse("A size of " + std::to_string(size_bytes) +
                                          " bytes must be 0 or more.");
    return CudaPools::get().allocate_or_throw(static_cast<size_t>(size_bytes), device, stream);
}

TIGHTSHIP_EXPORTED void tightship_torch_deallocate(void *pointer, ssize_t size_bytes, int device,
                                                   StreamHandle stream) noexcept {
    give_back(pointer, [&] {
        return CudaPools::get().deallocate(pointer, static_cast<size_t>(size_bytes), device,
                                           stream);
    });
}

TIGHTSHIP_EXPORTED void tightship_torch_record_stream(void *pointer, StreamHandle stream) noexcept {
    CudaPools::get().record_stream(pointer, stream);
}

/// Allocates for callers in C: null if memory is refused. All work with the block is in `stream`.
TIGHTSHIP_EXPORTED void *tightship_cupy_allocate(void *stream, size_t size_bytes,
                                                 int device) noexcept {
    return quiet([&] {
        return CudaPools::get().allocate_whole(size_bytes, device,
                                               static_cast<StreamHandle>(stream));
    });
}

TIGHTSHIP_EXPORTED void tightship_cupy_deallocate(void *stream, void *pointer,
                                                  int device) noexcept {
    give_back(pointer, [&] {
        return CudaPools::get().deallocate_whole(pointer, device,
                                                 static_cast<StreamHandle>(stream));
    });
}

namespace tightship::bind {

void cuda_pools(nb::module_ &module) {
    module.def(
        "configure_cuda_pools",
        [](Amount page, std::optional<Amount> max, double patience,
           const std::optional<std::string> &driver) {
            if (!(patience >= 0))
                throw resource::Misuse("`patience_s` must be 0 or more.");
            CudaPools::Settings settings{.page_bytes = at_least(1, "page_bytes", page),
                                         .patience = std::chrono::nanoseconds(
                                             static_cast<int64_t>(std::min(patience, 1e9) * 1e9)),
                                         .driver_path = driver.value_or("")};
            if (max)
                settings.max_bytes = at_least(1, "max_bytes", *max);
            CudaPools::get().configure(settings);
        },
        nb::kw_only(), "page_bytes"_a = CudaPools::Settings{}.page_bytes,
        "max_bytes"_a.none() = nb::none(), "patience_s"_a = 1.0, "driver_library"_a = nb::none(),
        "Set the pools' settings; refused while blocks are in use under other settings.");
    module.def(
        "cuda_pool_statistics",
        [](int device) { return CudaPools::get().virtual_statistics(device); }, "device"_a);
    module.def(
        "cuda_pool_live_count", [](int device) { return CudaPools::get().live_count(device); },
        "device"_a);
    module.def(
        "cuda_pool_stream_count", [](int device) { return CudaPools::get().stream_count(device); },
        "device"_a, "Return the number of stream handles that the pool remembers.");
    module.def(
        "trim_cuda_pool", [](int device) { return CudaPools::get().trim(device); }, "device"_a);
}

} // namespace tightship::bind
