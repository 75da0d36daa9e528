/// Addresses whose small pages are backed, given back and replaced by a file's one run at a time.
#pragma once

#include <cstddef>

namespace tightship::resource {

/// Reserved addresses. Bytes are given by half-open ranges of whole pages within the capacity.
///
/// Pages that are not open read as zeros and must not be written; they take no memory and count for
/// no limit but that of addresses.
class PageRange {
  public:
    /// Reserves whole pages; throws `std::bad_alloc` if the system lacks the addresses.
    explicit PageRange(size_t capacity_bytes);
    ~PageRange();
    PageRange(const PageRange &) = delete;
    PageRange &operator=(const PageRange &) = delete;

    char *start() const { return start_; }
    size_t capacity_bytes() const { return capacity_bytes_; }

    /// Opens closed pages, which are private and zero. False, and none is opened, if refused.
    bool open(size_t start, size_t stop);
    /// Closes pages of any kind; their contents are lost. False if the system refuses to cut a
    /// mapping in two.
    bool close(size_t start, size_t stop);
    /// Makes open pages zero and gives their memory back; they stay open.
    void discard(size_t start, size_t stop);
    /// Shows the pages of a file in place of pages of any kind, to be read only. False, and the
    /// pages are as they were, if refused.
    bool show(size_t start, size_t stop, int file, size_t offset_bytes);

  private:
    char *start_;
    size_t capacity_bytes_;
};

} // namespace tightship::resource
