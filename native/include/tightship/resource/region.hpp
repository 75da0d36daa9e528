/// Memory that belongs to the caller, as an upstream: an array, a mapped file, a shared segment.
#pragma once

#include "tightship/resource/memory_resource.hpp"

#include <atomic>

namespace tightship::resource {

/// Hands out one block at a time, from the first aligned byte of the region on; never reads or
/// writes the region.
class RegionResource : public MemoryResource {
  public:
    RegionResource(void *start, size_t size_bytes, bool is_shared = false)
        : range_{reinterpret_cast<uintptr_t>(start), size_bytes}, is_shared_(is_shared) {}

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) final;
    Freed deallocate(void *pointer, size_t size_bytes, size_t alignment = kDefaultAlignment) final;
    Range range_of(const void *pointer) const final {
        return range_.contains(pointer) ? range_ : Range{};
    }
    size_t size_of(const void *pointer) const final {
        return live_ == reinterpret_cast<uintptr_t>(pointer) ? live_bytes_.load() : 0;
    }
    Reach reach() const final { return {.size_bytes = range_.size_bytes}; }
    bool is_shared() const final { return is_shared_; }
    Statistics statistics() const final;
    std::string refusal(size_t size_bytes, size_t alignment) const final;

  private:
    Range range_;
    bool is_shared_;
    std::atomic<uintptr_t> live_{0};    // address of the live block; 0 if there is none
    std::atomic<size_t> live_bytes_{0}; // its size
};

} // namespace tightship::resource
