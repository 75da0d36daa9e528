/// Canaries and a quarantine, which detect writes beside blocks and after their end of life.
#pragma once

#include "tightship/resource/adaptor/quarantining.hpp"

#include <mutex>

namespace tightship::resource {

/// Places every block between canaries of 32 bytes, checked when it comes back: a damaged block
/// stays live. Freed blocks are filled with a pattern and wait in a quarantine of
/// `quarantine_bytes` before they can be handed out; writes to them meanwhile are found when they
/// leave, or by `faults`.
class GuardedResource final : public QuarantiningAdaptor, private Forkable {
  public:
    /// Throws `Misuse` if the upstream frees nothing, or never has room for the canaries.
    GuardedResource(std::shared_ptr<MemoryResource> upstream, size_t quarantine_bytes);
    ~GuardedResource() override;

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Reach reach() const override;

    /// Checks every block, live or in quarantine; returns a sentence for each damaged one, after
    /// those found earlier. REQUIRES: no thread writes to the blocks.
    std::vector<std::string> faults() const;

  private:
    bool shut(const LiveBlock &block) override;
    void give_back(const LiveBlock &block) override;

    void before_fork() override { mutex_.lock(); }
    void after_fork(bool) override { mutex_.unlock(); }

    mutable std::mutex mutex_;
    std::vector<std::string> faults_;
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
