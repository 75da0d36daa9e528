/// Pool for each CUDA device, for frameworks that allocate through functions of C.
#pragma once

#include "tightship/resource/virtual/cuda_stream.hpp"
#include "tightship/resource/virtual/stealing_resource.hpp"

#include <map>
#include <string>

namespace tightship::resource {

/// Pools, each made at the first request to its device. Methods may be called from any thread,
/// except `configure`.
class CudaPools {
  public:
    struct Settings {
        size_t page_bytes = StealingVirtualResource::Settings{}.page_bytes;
        size_t max_bytes = SIZE_MAX; ///< of each device
        std::chrono::nanoseconds patience = StealingVirtualResource::Settings{}.patience;
        std::string driver_path; ///< as for `CudaDriver::open`

        bool operator==(const Settings &) const = default;
    };

    /// Returns the process's pools. They are never destroyed, because frameworks free memory until
    /// the process ends.
    static CudaPools &get();

    /// Gives all pools back and makes new ones with other settings. Throws `Misuse` while a block
    /// is live, unless the settings are the same.
    void configure(const Settings &settings);

    /// Allocates a block; null if the device has no more memory. Throws `Unavailable` if the device
    /// does not exist.
    [[nodiscard]] void *allocate(size_t size_bytes, int ordinal, cuda::StreamHandle stream);
    /// Allocates as `allocate` does, but throws `Refused` instead of returning null.
    [[nodiscard]] void *allocate_or_throw(size_t size_bytes, int ordinal,
                                          cuda::StreamHandle stream);
    Freed deallocate(void *pointer, size_t size_bytes, int ordinal, cuda::StreamHandle stream);
    /// Allocates a block that is freed by its address alone, in whole granules, so that its
    /// requested size is the size it takes. Stream 0 stands for every stream that synchronizes with
    /// the default one: a block freed on it is handed out once all of these are done.
    [[nodiscard]] void *allocate_whole(size_t size_bytes, int ordinal, cuda::StreamHandle stream);
    Freed deallocate_whole(void *pointer, int ordinal, cuda::StreamHandle stream);
    /// Records that another stream uses the block as well: it is handed out only once that stream
    /// has done the work it has when the block is freed. REQUIRES: the stream is not the per-thread
    /// one.
    void record_stream(void *pointer, cuda::StreamHandle stream);

    VirtualStatistics virtual_statistics(int ordinal);
    size_t live_count(int ordinal);
    /// Returns the number of streams whose handles are remembered.
    size_t stream_count(int ordinal);
    /// Gives unused memory back to the device; returns its bytes.
    size_t trim(int ordinal);

  private:
    struct Pool;

    std::shared_ptr<Pool> pool_of(int ordinal);

    std::mutex mutex_; // guards the members below; pools have their own locks
    Settings settings_;
    std::map<int, std::shared_ptr<Pool>> pools_;
};

} // namespace tightship::resource
