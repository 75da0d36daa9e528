/// Which blocks are out, and who asked for them.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/live_blocks.hpp"

#include <functional>

namespace tightship::resource {

/// Sees every block that is none, or was asked for otherwise, before the upstream does.
class TrackingResource final : public Adaptor {
  public:
    using Origin = std::function<std::string()>;

    /// `origin` tells where the calling thread is; without it blocks have none.
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
