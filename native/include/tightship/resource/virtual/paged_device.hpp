/// Physical memory and addresses as separate objects, which virtual resources combine.
#pragma once

#include "tightship/resource/virtual/fence.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

namespace tightship::resource {

/// Chunk of a device's memory, accessible only where it is mapped. Its destructor gives the memory
/// back. REQUIRES: it is mapped nowhere when destroyed.
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

/// Chunks in the order in which they are mapped.
using Chunks = std::span<PhysicalMemory *const>;

/// Range of addresses, reserved until its destructor. REQUIRES: nothing is mapped there by then.
class VirtualMemory {
  public:
    VirtualMemory(uintptr_t start, size_t size_bytes) : start_(start), size_bytes_(size_bytes) {}
    VirtualMemory(const VirtualMemory &) = delete;
    VirtualMemory &operator=(const VirtualMemory &) = delete;
    virtual ~VirtualMemory() = default;

    uintptr_t start() const { return start_; }
    size_t size_bytes() const { return size_bytes_; }

    /// Maps chunks to the addresses from `offset_bytes` on; returns false, and maps none, if
    /// refused. REQUIRES: nothing is mapped there, the chunks are mapped nowhere (unless the device
    /// maps twice), sizes and offset are multiples of the granularity.
    [[nodiscard]] virtual bool map(size_t offset_bytes, Chunks chunks) = 0;
    /// Unmaps chunks that one or more calls of `map` mapped, the last one first, until one is
    /// refused; returns how many it unmapped.
    [[nodiscard]] virtual size_t unmap(size_t offset_bytes, Chunks chunks) = 0;
    /// Reserves the addresses behind the range as well; false if these are taken.
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

/// Takes a lock that another thread holds, which may wait for something that this thread has.
/// Python's bindings replace it by one that releases the GIL meanwhile.
inline std::unique_lock<std::mutex> (*wait_for_lock)(std::mutex &mutex) = [](std::mutex &mutex) {
    return std::unique_lock(mutex);
};

/// Source of chunks and addresses. Calls may come from any thread, those on one address range from
/// one at a time.
class PagedDevice {
  public:
    PagedDevice() = default;
    PagedDevice(const PagedDevice &) = delete;
    PagedDevice &operator=(const PagedDevice &) = delete;
    virtual ~PagedDevice() = default;

    /// Returns the divisor of chunk sizes and mapping offsets, in bytes: a power of two.
    virtual size_t granularity_bytes() const = 0;
    virtual size_t largest_chunk_bytes() const { return SIZE_MAX; }
    /// Returns false if a block of that size can never have memory, whatever is given back. Asked
    /// before the chunks of a block are created one by one, each of which the system would grant.
    virtual bool can_back(size_t /*block_bytes*/) const { return true; }
    /// Creates a chunk; null if the device has no more memory.
    virtual std::unique_ptr<PhysicalMemory> create_physical_memory(size_t size_bytes) = 0;
    /// Destroys chunks, in fewer calls of the system than one by one if the device can.
    virtual void destroy(std::span<std::unique_ptr<PhysicalMemory>> chunks) {
        for (auto &chunk : chunks)
            chunk.reset();
    }
    /// Reserves addresses at a multiple of `alignment`, a power of two; null if the system has no
    /// more.
    virtual std::unique_ptr<VirtualMemory> create_virtual_memory(size_t size_bytes,
                                                                 size_t alignment) = 0;
    /// Returns whether the processor can read and write what is mapped.
    virtual bool is_host() const { return true; }
    /// Returns whether a chunk can be mapped in several places at once.
    virtual bool maps_twice() const { return false; }
    virtual bool is_shared() const { return false; }
    /// Returns whether the stream's fences can be polled while this device's locks are held.
    virtual bool heeds(const Stream &) const { return true; }
    /// Takes a lock that is held while this device is called.
    virtual std::unique_lock<std::mutex> enter(std::mutex &mutex) const {
        std::unique_lock lock(mutex, std::try_to_lock);
        return lock.owns_lock() ? std::move(lock) : wait_for_lock(mutex);
    }
};

} // namespace tightship::resource
