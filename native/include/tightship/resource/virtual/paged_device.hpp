/// Physical memory and addresses as two things: what a virtual allocator joins.
#pragma once

#include "tightship/resource/virtual/fence.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace tightship::resource {

/// A chunk of a device's memory, reached only where it is mapped. Its end gives the memory back.
/// REQUIRES: it is mapped nowhere when it goes.
class PhysicalMemory {
  public:
    explicit PhysicalMemory(size_t size_bytes) : size_bytes_(size_bytes) {}
    PhysicalMemory(const PhysicalMemory &) = delete;
    PhysicalMemory &operator=(const PhysicalMemory &) = delete;
    virtual ~PhysicalMemory() = default;

    size_t size_bytes() const { return size_bytes_; }

  private:
    size_t size_bytes_;
};

/// Chunks that lie one behind the other.
using Chunks = std::span<PhysicalMemory *const>;

/// A range of addresses, reserved until it goes. REQUIRES: nothing is mapped there by then.
class VirtualMemory {
  public:
    VirtualMemory(uintptr_t start, size_t size_bytes) : start_(start), size_bytes_(size_bytes) {}
    VirtualMemory(const VirtualMemory &) = delete;
    VirtualMemory &operator=(const VirtualMemory &) = delete;
    virtual ~VirtualMemory() = default;

    uintptr_t start() const { return start_; }
    size_t size_bytes() const { return size_bytes_; }

    /// Joins chunks to the addresses from `offset_bytes` on. REQUIRES: nothing is mapped there,
    /// the chunks are mapped nowhere (unless the device maps twice), sizes and offset are multiples
    /// of the granularity. All of them, or false and none.
    [[nodiscard]] virtual bool map(size_t offset_bytes, Chunks chunks) = 0;
    /// Separates chunks that one or more calls of `map` joined, the last one first, until one is
    /// refused; how many it separated.
    [[nodiscard]] virtual size_t unmap(size_t offset_bytes, Chunks chunks) = 0;
    /// Reserves the addresses behind it as well; false where these are somebody's.
    [[nodiscard]] bool grow(size_t more_bytes) {
        if (!extend(more_bytes))
            return false;
        size_bytes_ += more_bytes;
        return true;
    }

  private:
    virtual bool extend(size_t more_bytes) = 0;

    uintptr_t start_;
    size_t size_bytes_;
};

/// How a thread takes a lock that another one holds, which may wait for something that this thread
/// has; Python's bindings let go of the interpreter meanwhile.
inline std::unique_lock<std::mutex> (*wait_for_lock)(std::mutex &mutex) = [](std::mutex &mutex) {
    return std::unique_lock(mutex);
};

/// Makes both. Calls may come from any thread, those on one address range from one at a time.
class PagedDevice {
  public:
    PagedDevice() = default;
    PagedDevice(const PagedDevice &) = delete;
    PagedDevice &operator=(const PagedDevice &) = delete;
    virtual ~PagedDevice() = default;

    /// Sizes of chunks and the offsets they are mapped at are multiples of it: a power of two.
    virtual size_t granularity_bytes() const = 0;
    virtual size_t largest_chunk_bytes() const { return SIZE_MAX; }
    /// False where no block of that size can ever have memory, whatever is given back. Asked
    /// before the chunks of a block are made one by one, each of which the system would grant.
    virtual bool can_back(size_t /*block_bytes*/) const { return true; }
    /// Null where the device has no more.
    virtual std::unique_ptr<PhysicalMemory> create_physical_memory(size_t size_bytes) = 0;
    /// At a multiple of `alignment`, a power of two; null where the system has no more addresses.
    virtual std::unique_ptr<VirtualMemory> create_virtual_memory(size_t size_bytes,
                                                                 size_t alignment) = 0;
    /// Whether the processor can read and write what is mapped.
    virtual bool is_host() const { return true; }
    /// Whether a chunk can be mapped in several places at once.
    virtual bool maps_twice() const { return false; }
    virtual bool is_shared() const { return false; }
    /// Whether a stream can say, while this device's locks are held, when its work is done.
    virtual bool heeds(const Stream &) const { return true; }
    /// How a thread takes a lock that is held while this device is called.
    virtual std::unique_lock<std::mutex> enter(std::mutex &mutex) const {
        std::unique_lock lock(mutex, std::try_to_lock);
        return lock.owns_lock() ? std::move(lock) : wait_for_lock(mutex);
    }
};

} // namespace tightship::resource
