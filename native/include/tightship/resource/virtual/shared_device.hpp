/// Pages of a file in memory as a paged device.
#pragma once

#include "tightship/resource/virtual/paged_device.hpp"

namespace tightship::resource {

/// Chunks are parts of one file without a name, which other processes can map by its descriptor.
/// In a child of a fork the pages are still the parent's.
class SharedDevice final : public PagedDevice {
  public:
    /// Throws `Misuse` where the system has no files in memory.
    SharedDevice();

    size_t granularity_bytes() const override;
    /// Memory and swap bound what the file's pages can be of; the system itself does not check.
    bool can_back(size_t block_bytes) const override;
    std::unique_ptr<PhysicalMemory> create_physical_memory(size_t size_bytes) override;
    std::unique_ptr<VirtualMemory> create_virtual_memory(size_t size_bytes,
                                                         size_t alignment) override;
    bool maps_twice() const override { return true; }
    bool is_shared() const override { return true; }
    int descriptor() const;
    /// Where in the file a chunk is.
    static size_t offset_of(const PhysicalMemory &chunk);

    class File;

  private:
    std::shared_ptr<File> file_;
};

} // namespace tightship::resource
