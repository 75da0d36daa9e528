/// Finds writes beside blocks and after their end: canaries and a quarantine.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/quarantine.hpp"

#include <mutex>

namespace tightship::resource {

/// Every block lies between canaries of 32 bytes, looked at when it comes back: a damaged one stays
/// live. Blocks that came back are filled and wait, `quarantine_bytes` of them, before they can be
/// handed out; what was written to them meanwhile is found when they leave, or by `faults`.
class GuardedResource final : public Adaptor, private Forkable {
  public:
    /// Throws `Misuse` where the upstream frees nothing, or never gives room for the canaries.
    GuardedResource(std::shared_ptr<MemoryResource> upstream, size_t quarantine_bytes);
    ~GuardedResource() override;

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    Range range_of(const void *pointer) const override { return live_.range_of(pointer); }
    size_t size_of(const void *pointer) const override { return live_.size_of(pointer); }
    Reach reach() const override;
    Statistics statistics() const override;
    size_t trim() override;

    /// Looks at every block, live or waiting: a sentence for each that is damaged, after those
    /// that were found so far. No thread may be writing to them.
    std::vector<std::string> faults() const;
    size_t quarantined_bytes() const { return waiting_.size_bytes(); }

  private:
    void release_block(bool all);
    void give_back(const LiveBlock &block);

    void before_fork() override { mutex_.lock(); }
    void after_fork(bool) override { mutex_.unlock(); }

    LiveBlocks live_;
    Quarantine waiting_;
    mutable std::mutex mutex_;
    std::vector<std::string> faults_;
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
