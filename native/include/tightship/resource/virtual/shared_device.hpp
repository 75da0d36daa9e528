/// Pages of a file in memory as a paged device.
#pragma once

#include "tightship/resource/virtual/paged_device.hpp"

namespace tightship::resource {

/// Chunks are parts of one file without a name, which other processes can map by its descriptor.
/// After a fork, the child's mappings still show the parent's pages.
class SharedDevice final : public PagedDevice {
  public:
    /// Throws `Misuse` if the system has no files in memory.
    SharedDevice();

    size_t granularity_bytes() const override;
    /// Compares the size with the machine's memory and swap, because the system checks a file's
    /// size only when its pages are touched.
    bool can_back(size_t block_bytes) const override;
    std::unique_ptr<PhysicalMemory> create_physical_memory(size_t size_bytes) override;
    std::unique_ptr<VirtualMemory> create_virtual_memory(size_t size_bytes,
                                                         size_t alignment) override;
    bool maps_twice() const override { return true; }
    bool is_shared() const override { return true; }
    int descriptor() const;
    /// Returns the offset of a chunk in the file.
    static size_t offset_of(const PhysicalMemory &chunk);

    class File;

  private:
    std::shared_ptr<File> file_;
};

} // namespace tightship::resource
