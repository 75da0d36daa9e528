/// C library's own allocator, as a baseline.
#pragma once

#include "tightship/resource/memory_resource.hpp"

#include <atomic>

namespace tightship::resource {

/// Calls `malloc` and `free`. Checks nothing that is given back: put a `TrackingResource` over it
/// if callers may be wrong.
///
/// Its held bytes are the growth of the process's heap since the resource was made, at least the
/// live bytes. This is exact if no other code allocates meanwhile, except for some 100 KiB that the
/// heap had free before.
class MallocResource final : public MemoryResource {
  public:
    MallocResource();

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    /// Returns an empty range, because malloc does not tell where its blocks are.
    Range range_of(const void *) const override { return {}; }
    Statistics statistics() const override;
    size_t available_bytes() const override { return SIZE_MAX; }
    std::string refusal(size_t size_bytes, size_t alignment) const override;

  private:
    size_t heap_bytes_; // when the resource was made
    std::atomic<size_t> current_bytes_{0};
    std::atomic<size_t> current_count_{0};
};

} // namespace tightship::resource
