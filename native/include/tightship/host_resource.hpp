/// Whole pages straight from the operating system: the root upstream on the host.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tightship {

/// Thread-safe; `current_bytes` is the sum of live allocations, rounded up to pages.
class HostResource {
  public:
    /// Returns null when the system refuses; an `alignment` above the page size is refused.
    void *allocate(size_t size_bytes, size_t alignment);
    /// REQUIRES: `pointer` and `size_bytes` of an earlier `allocate` of this resource.
    void deallocate(void *pointer, size_t size_bytes);

    int64_t current_bytes() const { return current_bytes_; }
    int64_t peak_bytes() const { return peak_bytes_; }
    int64_t allocation_count() const { return allocation_count_; }

  private:
    std::atomic<int64_t> current_bytes_{0};
    std::atomic<int64_t> peak_bytes_{0};
    std::atomic<int64_t> allocation_count_{0};
};

} // namespace tightship
