/// Common part of resources that look for writes after a block's end.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/quarantine.hpp"

namespace tightship::resource {

/// Looks at each block that comes back: a damaged one stays live, others wait, `quarantine_bytes`
/// of them, before the upstream has them again.
class QuarantiningAdaptor : public Adaptor {
  public:
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override { return live_.range_of(pointer); }
    size_t size_of(const void *pointer) const override { return live_.size_of(pointer); }
    Statistics statistics() const override;
    size_t trim() override;

    size_t quarantined_bytes() const { return waiting_.size_bytes(); }

  protected:
    /// Throws `Misuse` where the upstream frees nothing.
    QuarantiningAdaptor(std::shared_ptr<MemoryResource> upstream, size_t quarantine_bytes);

    /// Returns memory of the upstream, which may have it only once no block waits; or null.
    void *take(size_t size_bytes, size_t alignment);
    /// Gives back the blocks that need wait no longer, or all. For destructors of derived classes.
    void release_blocks(bool all);

    /// Returns whether nothing beside a block was written, and if so makes its bytes ready to wait.
    virtual bool shut(const LiveBlock &block) = 0;
    /// Gives a block that waited to the upstream.
    virtual void give_back(const LiveBlock &block) = 0;

    LiveBlocks live_;
    Quarantine waiting_;
};

} // namespace tightship::resource
