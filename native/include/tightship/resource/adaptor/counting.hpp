/// Current, peak and total of what was asked for, in scopes.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/biased_lock.hpp"
#include "tightship/resource/fork_guard.hpp"

#include <mutex>
#include <vector>

namespace tightship::resource {

/// Of blocks that came within a scope; a scope in which older blocks end goes below 0.
struct Counters {
    int64_t current_bytes = 0;
    int64_t current_count = 0;
    int64_t peak_bytes = 0;
    int64_t peak_count = 0;
    int64_t total_bytes = 0;
    int64_t total_count = 0;
};

/// Counts bytes as they are asked for; of a block that was refused, nothing.
class StatisticsResource final : public Adaptor, private Forkable {
  public:
    explicit StatisticsResource(std::shared_ptr<MemoryResource> upstream)
        : Adaptor(std::move(upstream)) {}

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;

    /// Of the innermost scope.
    Counters counters() const;
    /// Begins a scope at zero; returns how many there are now.
    size_t push();
    /// Ends the innermost scope and adds it to the one around it. Throws `Misuse` where there are
    /// not `depth` scopes, or none but the outermost.
    Counters pop(size_t depth);

  private:
    void before_fork() override { lock_.lock(); }
    void after_fork(bool) override { lock_.unlock(); }

    mutable BiasedLock lock_;
    std::vector<Counters> scopes_{1};
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
