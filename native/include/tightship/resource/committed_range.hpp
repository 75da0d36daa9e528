/// Memory that grows and shrinks where it is.
#pragma once

#include <cstddef>

namespace tightship::resource {

/// Addresses of which the front is backed with zeroed private pages, huge ones where they fit.
///
/// `size_bytes() <= capacity_bytes()`; what is beyond `size_bytes()` must not be touched, takes no
/// memory and counts for no limit but that of addresses.
class CommittedRange {
  public:
    /// Whole pages; throws `std::bad_alloc` where the system has no such addresses.
    explicit CommittedRange(size_t capacity_bytes);
    ~CommittedRange();
    CommittedRange(const CommittedRange &) = delete;
    CommittedRange &operator=(const CommittedRange &) = delete;

    char *start() const { return start_; }
    size_t capacity_bytes() const { return capacity_bytes_; }
    size_t size_bytes() const { return size_bytes_; }

    /// Backs the first `size_bytes`, in whole pages; what is behind them goes back to the system,
    /// but for the rest of a huge page. Bytes that stay keep what is in them. False, and nothing
    /// changed, where the system refuses, or there are no so many addresses.
    bool resize(size_t size_bytes);

    /// Gives back the huge pages that lie wholly in bytes `[start, stop)`; they stay backed, and
    /// are zeros when they are next touched. Returns how many bytes these are.
    /// REQUIRES: start <= stop <= size_bytes()
    size_t discard(size_t start, size_t stop);

  private:
    char *start_;
    size_t capacity_bytes_;
    size_t size_bytes_ = 0;
};

} // namespace tightship::resource
