/// Files of others, mapped without the risk of dying when they are made shorter.
#pragma once

#include <cstddef>

namespace tightship::os {

/// A part of a file, read and written where it lies.
///
/// Whoever has the file may shorten it at any time, or the system may have no page left for it:
/// touching such bytes would end the process by SIGBUS. Then all of the mapping becomes zeros that
/// belong to nobody else, and `is_lost` says so from there on. The handler of SIGBUS that does this
/// is set by the first mapping and passes on whatever is about other addresses.
class GuardedMapping {
  public:
    /// REQUIRES: `offset_bytes` is a multiple of the page size, and the file open to read and
    /// write. Throws std::bad_alloc where the system refuses, or there are `kGuardsMax` of them.
    GuardedMapping(int file, size_t offset_bytes, size_t size_bytes);
    ~GuardedMapping();
    GuardedMapping(const GuardedMapping &) = delete;
    GuardedMapping &operator=(const GuardedMapping &) = delete;

    unsigned char *start() const { return start_; }
    size_t size_bytes() const { return size_bytes_; }
    bool is_lost() const;

  private:
    unsigned char *start_;
    size_t size_bytes_;
    size_t guard_;
};

constexpr size_t kGuardsMax = 4096;

} // namespace tightship::os
