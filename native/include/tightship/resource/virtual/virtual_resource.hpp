/// Blocks at addresses that physical chunks are mapped to, and moved between.
#pragma once

#include "tightship/resource/memory_resource.hpp"
#include "tightship/resource/virtual/fence.hpp"
#include "tightship/resource/virtual/listing.hpp"
#include "tightship/resource/virtual/paged_device.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace tightship::resource {

/// Counters of a virtual resource; exact while no other call is in flight.
struct VirtualStatistics {
    size_t requested_bytes = 0;      ///< requested sizes of live blocks
    size_t allocated_bytes = 0;      ///< bytes that live blocks take
    size_t peak_allocated_bytes = 0; ///< most `allocated_bytes` so far
    size_t physical_bytes = 0;       ///< of all chunks, live and cached
    size_t peak_physical_bytes = 0;  ///< most `physical_bytes` so far
    size_t cached_bytes = 0;         ///< of chunks that are not in a live block
    size_t address_bytes = 0;        ///< of reserved addresses
    size_t waiting_count = 0;        ///< addresses kept for work that is not done
    size_t allocation_count = 0;     ///< of all time
    size_t exact_count = 0;          ///< of these, met by memory already mapped there
    size_t remap_count = 0;          ///< of these, those for which chunks were mapped elsewhere
    size_t created_count = 0;        ///< chunks made
    size_t moved_count = 0;          ///< chunks mapped elsewhere
    size_t released_count = 0;       ///< chunks given back to the device
    size_t retry_count = 0;          ///< requests repeated after caches were released
    size_t wait_count = 0;           ///< requests that had to wait for a fence
};

/// Base of both policies. A block may still be in use by a stream when it is freed: it can serve
/// the same stream at once, because a stream does its work in order, and others behind a fence.
class VirtualResource : public MemoryResource {
  public:
    using StreamPointer = std::shared_ptr<Stream>;

    /// Allocate and deallocate in the order of a stream; null stands for the caller itself.
    [[nodiscard]] virtual void *allocate_on(size_t size_bytes, size_t alignment,
                                            const StreamPointer &stream) = 0;
    virtual Freed deallocate_on(void *pointer, size_t size_bytes, size_t alignment,
                                const StreamPointer &stream) = 0;

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) final {
        return allocate_on(size_bytes, alignment, nullptr);
    }
    Freed deallocate(void *pointer, size_t size_bytes, size_t alignment = kDefaultAlignment) final {
        return deallocate_on(pointer, size_bytes, alignment, nullptr);
    }

    /// Returns the owner of this stream that the resource already has, if any, so that it owns a
    /// stream once, however often it is passed.
    StreamPointer known(const StreamPointer &stream);
    /// Calls `visit` with the device, and with each stream that the resource may own, once.
    using VisitStream = std::function<void(Stream *)>;
    void each_stream(const VisitStream &visit) const;
    virtual const std::shared_ptr<PagedDevice> &device() const = 0;

    virtual VirtualStatistics virtual_statistics() const = 0;
    /// Returns every block that has memory, by segment, and by address within a segment.
    virtual std::vector<ListedBlock> blocks() const = 0;
    /// Keeps the last `count` events from now on; 0, the default, keeps none.
    virtual void record_events(size_t count) = 0;
    virtual std::vector<Event> events() const = 0;

  protected:
    /// Throws `Misuse` if the device cannot wait for the stream.
    static void check_stream(const PagedDevice &device, const StreamPointer &stream);
    /// Returns why a request was refused and what to change: memory, or the process's limit of
    /// mappings.
    static std::string what_is_short(const PagedDevice &device, size_t size_bytes);

  private:
    mutable std::mutex known_mutex_; // no other code is called while it is held
    std::map<Stream *, std::weak_ptr<Stream>> known_;
};

} // namespace tightship::resource
