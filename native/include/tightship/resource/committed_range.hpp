/// Memory that grows and shrinks in place.
#pragma once

#include <cstddef>

namespace tightship::resource {

/// Reserved addresses whose front is backed with zeroed private pages, huge ones where they fit.
///
/// `size_bytes() <= capacity_bytes()`; bytes beyond `size_bytes()` must not be touched, take no
/// memory and count for no limit but that of addresses.
class CommittedRange {
  public:
    /// Reserves whole pages; throws `std::bad_alloc` if the system lacks the addresses.
    explicit CommittedRange(size_t capacity_bytes);
    ~CommittedRange();
    CommittedRange(const CommittedRange &) = delete;
    CommittedRange &operator=(const CommittedRange &) = delete;

    char *start() const { return start_; }
    size_t capacity_bytes() const { return capacity_bytes_; }
    size_t size_bytes() const { return size_bytes_; }

    /// Backs the first `size_bytes`, in whole pages; pages behind them go back to the system,
    /// except the rest of a huge page. Bytes that stay backed keep their contents. Returns false,
    /// and changes nothing, if the system refuses or `size_bytes` exceeds the capacity.
    bool resize(size_t size_bytes);

    /// Gives back the memory of huge pages that lie wholly in bytes `[start, stop)`; they stay
    /// backed, and are zeros when next touched. Returns the bytes given back. REQUIRES: start <=
    /// stop <= size_bytes()
    size_t discard(size_t start, size_t stop);

  private:
    char *start_;
    size_t capacity_bytes_;
    size_t size_bytes_ = 0;
};

} // namespace tightship::resource
