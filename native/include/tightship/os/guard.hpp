/// Files of other processes, mapped so that this process survives if they are truncated.
#pragma once

#include <cstddef>

namespace tightship::os {

/// Part of a file, mapped to be read and written in place.
///
/// Any process with the file open may truncate it at any time, or the system may have no page left
/// for it: touching such bytes would end the process by SIGBUS. Instead, the whole mapping is
/// replaced by private zeros, and `is_lost` returns true from then on. The first mapping installs
/// the handler of SIGBUS that does this; the handler passes faults at other addresses on to the
/// handler before it.
class GuardedMapping {
  public:
    /// Maps the range. REQUIRES: `offset_bytes` is a multiple of the page size, and the file is
    /// open to read and write. Throws std::bad_alloc if the system refuses, or `kGuardsMax`
    /// mappings exist.
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
