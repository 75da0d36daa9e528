/// Alignment coarser than requested.
#pragma once

#include "tightship/resource/adaptor.hpp"

namespace tightship::resource {

/// Aligns blocks of `threshold_bytes` and more to multiples of `alignment` at least.
class AlignedResource final : public Adaptor {
  public:
    /// Throws `Misuse` if the upstream never aligns so coarsely.
    AlignedResource(std::shared_ptr<MemoryResource> upstream, size_t alignment,
                    size_t threshold_bytes = 0);

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;

  private:
    size_t raised(size_t size_bytes, size_t alignment) const;

    size_t alignment_, threshold_bytes_;
};

} // namespace tightship::resource
