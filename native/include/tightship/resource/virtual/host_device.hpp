/// Process's own memory as a paged device.
#pragma once

#include "tightship/resource/virtual/paged_device.hpp"

namespace tightship::resource {

/// Private pages, moved from address to address without a copy, huge ones if chunks span them.
///
/// A chunk has no memory before it is mapped for the first time, and keeps it from then on: its
/// pages stay where they were mapped last until they are mapped elsewhere, so that a move costs one
/// call.
class HostDevice final : public PagedDevice {
  public:
    size_t granularity_bytes() const override;
    /// Returns what the system would decide on one mapping of that size.
    bool can_back(size_t block_bytes) const override;
    std::unique_ptr<PhysicalMemory> create_physical_memory(size_t size_bytes) override;
    void destroy(std::span<std::unique_ptr<PhysicalMemory>> chunks) override;
    std::unique_ptr<VirtualMemory> create_virtual_memory(size_t size_bytes,
                                                         size_t alignment) override;
};

} // namespace tightship::resource
