/// Guard pages: pages without access, which stop a program at its first access beside a block or
/// after the block's end of life.
#pragma once

#include "tightship/resource/adaptor/quarantining.hpp"

namespace tightship::resource {

/// Places each block so that it ends at a page without access, with another such page before it; a
/// signal stops a thread that touches one. The bytes that alignment leaves between the block and
/// the page are checked when it comes back, as are 32 bytes before it. Freed blocks stay
/// inaccessible while they wait in a quarantine of `quarantine_bytes`.
///
///     | no access | ... canary | block | rest | no access |
class GuardPageResource final : public QuarantiningAdaptor {
  public:
    /// Throws `Misuse` if the upstream frees nothing, or never gives whole pages or so many bytes.
    GuardPageResource(std::shared_ptr<MemoryResource> upstream, size_t quarantine_bytes);
    ~GuardPageResource() override;

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Reach reach() const override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;

  private:
    bool shut(const LiveBlock &block) override;
    void give_back(const LiveBlock &block) override;
};

} // namespace tightship::resource
