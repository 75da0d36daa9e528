/// Record of live blocks and of the code that requested them.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/live_blocks.hpp"

#include <functional>

namespace tightship::resource {

/// Rejects, before the upstream does, pointers that are not live blocks and blocks of another size
/// or alignment.
class TrackingResource final : public Adaptor {
  public:
    using Origin = std::function<std::string()>;

    /// `origin` returns the calling thread's position in the code; without it blocks have no
    /// origin.
    explicit TrackingResource(std::shared_ptr<MemoryResource> upstream, Origin origin = {})
        : Adaptor(std::move(upstream)), origin_(std::move(origin)) {}

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;

    std::vector<LiveBlock> live() const { return blocks_.all(); }
    size_t live_bytes() const { return blocks_.size_bytes(); }

  private:
    Origin origin_;
    LiveBlocks blocks_;
};

} // namespace tightship::resource
