/// Guard pages: pages without access, which stop a program at its first access beside a block or
/// after the block's end of life.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/quarantine.hpp"

namespace tightship::resource {

/// Places each block so that it ends at a page without access, with another such page before it; a
/// signal stops a thread that touches one. The bytes that alignment leaves between the block and
/// the page are checked when it comes back, as are 32 bytes before it. Freed blocks stay
/// inaccessible while they wait in a quarantine of `quarantine_bytes`.
///
///     | no access | ... canary | block | rest | no access |
class GuardPageResource final : public Adaptor {
  public:
    /// Throws `Misuse` if the upstream frees nothing, or never gives whole pages or so many bytes.
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
