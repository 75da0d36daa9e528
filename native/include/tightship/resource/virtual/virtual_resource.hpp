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

/// Exact while no other call is in flight.
struct VirtualStatistics {
    size_t requested_bytes = 0;      ///< as asked for, in live blocks
    size_t allocated_bytes = 0;      ///< what live blocks take
    size_t peak_allocated_bytes = 0; ///< the most of it
    size_t physical_bytes = 0;       ///< of all chunks, live and cached
    size_t peak_physical_bytes = 0;  ///< the most of it
    size_t cached_bytes = 0;         ///< of chunks that no live block has
    size_t address_bytes = 0;        ///< of reserved addresses
    size_t waiting_count = 0;        ///< addresses kept for work that is not done
    size_t allocation_count = 0;     ///< of all time
    size_t exact_count = 0;          ///< of these, met by memory mapped as it was
    size_t remap_count = 0;          ///< of these, those for which chunks were mapped elsewhere
    size_t created_count = 0;        ///< chunks made
    size_t moved_count = 0;          ///< chunks mapped elsewhere
    size_t released_count = 0;       ///< chunks given back to the device
    size_t retry_count = 0;          ///< requests repeated after caches were given back
    size_t wait_count = 0;           ///< requests that had to wait for a fence
};

/// What both policies share. A block may still be in use by a stream when it is given back: it
/// serves the same stream at once, as that does its work in order, and others behind a fence.
class VirtualResource : public MemoryResource {
  public:
    using StreamPointer = std::shared_ptr<Stream>;

    /// As `allocate` and `deallocate`, for use in the order of a stream; null is the caller itself.
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

    /// The stream as an owner of it that the resource has already, where it has one: so it owns a
    /// stream once, however often that is given.
    StreamPointer known(const StreamPointer &stream);
    /// Shows the device, and each stream that the resource may own, once; owners of it, that is.
    using VisitStream = std::function<void(Stream *)>;
    void each_stream(const VisitStream &visit) const;
    virtual const std::shared_ptr<PagedDevice> &device() const = 0;

    virtual VirtualStatistics virtual_statistics() const = 0;
    /// Every block that has memory where it lies, by segment, and by address within one.
    virtual std::vector<ListedBlock> blocks() const = 0;
    /// Keeps the last `count` events from now on; none for 0, which it begins with.
    virtual void record_events(size_t count) = 0;
    virtual std::vector<Event> events() const = 0;

  protected:
    /// Throws `Misuse` where the device cannot heed the stream.
    static void check_stream(const PagedDevice &device, const StreamPointer &stream);
    /// Why it refuses, and what to do: memory, or the mappings that a process may have.
    static std::string what_is_short(const PagedDevice &device, size_t size_bytes);

  private:
    mutable std::mutex known_mutex_; // nothing is called while it is held
    std::map<Stream *, std::weak_ptr<Stream>> known_;
};

} // namespace tightship::resource
