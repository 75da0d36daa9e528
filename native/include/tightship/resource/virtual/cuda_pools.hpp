/// A pool for each CUDA device, for frameworks that ask functions of C for memory.
#pragma once

#include "tightship/resource/virtual/cuda_stream.hpp"
#include "tightship/resource/virtual/stealing_resource.hpp"

#include <map>
#include <string>

namespace tightship::resource {

/// A pool is made when its device is first asked for. Methods may be called from any thread, but
/// for `configure`.
class CudaPools {
  public:
    struct Settings {
        size_t page_bytes = StealingVirtualResource::Settings{}.page_bytes;
        size_t max_bytes = SIZE_MAX; ///< of each device
        std::chrono::nanoseconds patience = StealingVirtualResource::Settings{}.patience;
        std::string driver_path; ///< as for `CudaDriver::open`

        bool operator==(const Settings &) const = default;
    };

    /// The process's own. It never goes: frameworks give memory back until the very end.
    static CudaPools &get();

    /// Gives all pools back and makes new ones by other settings. Throws `Misuse` while a block is
    /// out, unless the settings are the same.
    void configure(const Settings &settings);

    /// Null where the device has no more; throws `Unavailable` where there is no such device.
    [[nodiscard]] void *allocate(size_t size_bytes, int ordinal, cuda::StreamHandle stream);
    /// As `allocate`, but throws `Refused`.
    [[nodiscard]] void *allocate_or_throw(size_t size_bytes, int ordinal,
                                          cuda::StreamHandle stream);
    Freed deallocate(void *pointer, size_t size_bytes, int ordinal, cuda::StreamHandle stream);
    /// A block by its address alone, and memory for one: of whole granules, so that what it was
    /// asked for by is what it takes. Stream 0 stands for every stream that heeds the default one:
    /// what comes back on it is handed out when all of these are done.
    [[nodiscard]] void *allocate_whole(size_t size_bytes, int ordinal, cuda::StreamHandle stream);
    Freed deallocate_whole(void *pointer, int ordinal, cuda::StreamHandle stream);
    /// Another stream uses the block as well: it is not handed out before that has done the work
    /// it has when the block comes back. REQUIRES: the stream is not each thread's own.
    void record_stream(void *pointer, cuda::StreamHandle stream);

    VirtualStatistics virtual_statistics(int ordinal);
    size_t live_count(int ordinal);
    /// Handles of streams that are remembered.
    size_t stream_count(int ordinal);
    /// Gives what is not in use back to the device; returns its bytes.
    size_t trim(int ordinal);

  private:
    struct Pool;

    std::shared_ptr<Pool> pool_of(int ordinal);

    std::mutex mutex_; // of what follows; pools have their own
    Settings settings_;
    std::map<int, std::shared_ptr<Pool>> pools_;
};

} // namespace tightship::resource
