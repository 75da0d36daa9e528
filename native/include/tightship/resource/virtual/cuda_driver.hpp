/// CUDA driver, opened at run time: the types and functions of it that are used here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace tightship::resource {

/// Library opened at run time, or its hardware, that cannot be used.
struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

namespace cuda {

using Result = int;
using Device = int;
using Pointer = unsigned long long;
using Handle = unsigned long long;
using Context = struct CUctx_st *;
using StreamHandle = struct CUstream_st *;
using Event = struct CUevent_st *;

constexpr Result kSuccess = 0;
constexpr Result kNotReady = 600;
constexpr int kHasVirtualMemory = 102; // an attribute of a device
constexpr int kDeviceLocation = 1;
constexpr int kPinned = 1;
constexpr int kReadWrite = 3;
constexpr int kMinimumGranularity = 0;
constexpr unsigned kWithoutTiming = 2; // of an event
/// Stream of the calling thread: the same handle is another stream in another thread.
constexpr uintptr_t kPerThreadStream = 2;

struct Location {
    int type;
    int id;
};

/// Properties of the memory that `cuMemCreate` makes.
struct AllocationProperties {
    int type;
    int requested_handle_types;
    Location location;
    void *windows_meta_data;
    unsigned char compression_type;
    unsigned char is_direct_rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
};
static_assert(sizeof(AllocationProperties) == 32);

struct AccessDescription {
    Location location;
    int flags;
};
static_assert(sizeof(AccessDescription) == 12);

} // namespace cuda

/// name here, exported name, parameters
#define TIGHTSHIP_CUDA_FUNCTIONS(F)                                                                \
    F(init, "cuInit", (unsigned flags))                                                            \
    F(device_get, "cuDeviceGet", (cuda::Device * device, int ordinal))                             \
    F(device_get_count, "cuDeviceGetCount", (int *count))                                          \
    F(device_get_attribute, "cuDeviceGetAttribute",                                                \
      (int *value, int attribute, cuda::Device device))                                            \
    F(device_total_mem, "cuDeviceTotalMem_v2", (size_t *bytes, cuda::Device device))               \
    F(primary_retain, "cuDevicePrimaryCtxRetain", (cuda::Context * context, cuda::Device device))  \
    F(primary_release, "cuDevicePrimaryCtxRelease_v2", (cuda::Device device))                      \
    F(push_current, "cuCtxPushCurrent_v2", (cuda::Context context))                                \
    F(pop_current, "cuCtxPopCurrent_v2", (cuda::Context * context))                                \
    F(get_granularity, "cuMemGetAllocationGranularity",                                            \
      (size_t *bytes, const cuda::AllocationProperties *properties, int kind))                     \
    F(address_reserve, "cuMemAddressReserve",                                                      \
      (cuda::Pointer * start, size_t bytes, size_t alignment, cuda::Pointer wanted,                \
       unsigned long long flags))                                                                  \
    F(address_free, "cuMemAddressFree", (cuda::Pointer start, size_t bytes))                       \
    F(create, "cuMemCreate",                                                                       \
      (cuda::Handle * handle, size_t bytes, const cuda::AllocationProperties *properties,          \
       unsigned long long flags))                                                                  \
    F(release, "cuMemRelease", (cuda::Handle handle))                                              \
    F(map, "cuMemMap",                                                                             \
      (cuda::Pointer start, size_t bytes, size_t offset, cuda::Handle handle,                      \
       unsigned long long flags))                                                                  \
    F(unmap, "cuMemUnmap", (cuda::Pointer start, size_t bytes))                                    \
    F(set_access, "cuMemSetAccess",                                                                \
      (cuda::Pointer start, size_t bytes, const cuda::AccessDescription *access, size_t count))    \
    F(event_create, "cuEventCreate", (cuda::Event * event, unsigned flags))                        \
    F(event_record, "cuEventRecord", (cuda::Event event, cuda::StreamHandle stream))               \
    F(event_query, "cuEventQuery", (cuda::Event event))                                            \
    F(event_synchronize, "cuEventSynchronize", (cuda::Event event))                                \
    F(event_destroy, "cuEventDestroy_v2", (cuda::Event event))                                     \
    F(stream_synchronize, "cuStreamSynchronize", (cuda::StreamHandle stream))                      \
    F(stream_wait_event, "cuStreamWaitEvent",                                                      \
      (cuda::StreamHandle stream, cuda::Event event, unsigned flags))                              \
    F(get_error_string, "cuGetErrorString", (cuda::Result result, const char **text))

/// Functions of an opened driver. A driver is never closed, because its threads run code of the
/// library.
class CudaDriver {
  public:
    /// Opens the driver in a file, once for each path; an empty path means
    /// `TIGHTSHIP_CUDA_DRIVER_LIBRARY`, or else the system's driver. Throws `Unavailable`.
    static std::shared_ptr<const CudaDriver> open(std::string path);

    /// Throws `Unavailable` with the failed call and the driver's error if `result` is not success.
    void check(cuda::Result result, const std::string &wanted) const;

#define TIGHTSHIP_DECLARE(name, symbol, parameters) cuda::Result(*name) parameters = nullptr;
    TIGHTSHIP_CUDA_FUNCTIONS(TIGHTSHIP_DECLARE)
#undef TIGHTSHIP_DECLARE

  private:
    explicit CudaDriver(const std::string &path);

    std::string path_;
};

} // namespace tightship::resource
