/// The C library's own allocator, to compare with.
#pragma once

#include "tightship/resource/memory_resource.hpp"

#include <atomic>

namespace tightship::resource {

/// Checks nothing that is given back: put a `TrackingResource` over it where that may be wrong.
///
/// What it holds is by how much the process's heap has grown since the resource was made, at least
/// what is live: right where nobody else allocates meanwhile, but for some 100 KiB that the heap
/// had free before.
class MallocResource final : public MemoryResource {
  public:
    MallocResource();

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    /// Empty: it does not know.
    Range range_of(const void *) const override { return {}; }
    Statistics statistics() const override;
    size_t available_bytes() const override { return SIZE_MAX; }
    std::string refusal(size_t size_bytes, size_t alignment) const override;

  private:
    size_t heap_bytes_; // when it was made
    std::atomic<size_t> current_bytes_{0};
    std::atomic<size_t> current_count_{0};
};

} // namespace tightship::resource
