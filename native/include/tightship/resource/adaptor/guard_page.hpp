/// Stops a program at the first access beside a block or after its end: pages without access.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/quarantine.hpp"

namespace tightship::resource {

/// A block ends where a page begins that nobody may touch, and another such page lies before it;
/// who touches one is stopped by a signal. What its alignment leaves between the block and the page
/// is looked at when it comes back, as are 32 bytes before it. Blocks that came back cannot be
/// touched while they wait, `quarantine_bytes` of them.
///
///     | no access | ... canary | block | rest | no access |
class GuardPageResource final : public Adaptor {
  public:
    /// Throws `Misuse` where the upstream frees nothing, or never gives so much or whole pages.
    GuardPageResource(std::shared_ptr<MemoryResource> upstream, size_t quarantine_bytes);
    ~GuardPageResource() override;

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override { return live_.range_of(pointer); }
    size_t size_of(const void *pointer) const override { return live_.size_of(pointer); }
    Reach reach() const override;
    Statistics statistics() const override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    size_t trim() override;

    size_t quarantined_bytes() const { return waiting_.size_bytes(); }

  private:
    void release_block(bool all);
    void give_back(const LiveBlock &block);

    LiveBlocks live_;
    Quarantine waiting_;
};

} // namespace tightship::resource
