/// Counters of requested bytes: current, peak and total, in scopes.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/biased_lock.hpp"
#include "tightship/resource/fork_guard.hpp"

#include <mutex>
#include <vector>

namespace tightship::resource {

/// Counts of the blocks allocated within a scope; negative if more older blocks are freed in it.
struct Counters {
    int64_t current_bytes = 0;
    int64_t current_count = 0;
    int64_t peak_bytes = 0;
    int64_t peak_count = 0;
    int64_t total_bytes = 0;
    int64_t total_count = 0;
};

/// Counts requested bytes; a refused request counts nothing.
class StatisticsResource final : public Adaptor, private Forkable {
  public:
    explicit StatisticsResource(std::shared_ptr<MemoryResource> upstream)
        : Adaptor(std::move(upstream)) {}

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;

    /// Returns the counters of the innermost scope.
    Counters counters() const;
    /// Opens a scope with counters of zero; returns the number of open scopes.
    size_t push();
    /// Closes the innermost scope and adds its counters to the one around it. Throws `Misuse`
    /// unless `depth` scopes are open, or if only the outermost is.
    Counters pop(size_t depth);

  private:
    void before_fork() override { lock_.lock(); }
    void after_fork(bool) override { lock_.unlock(); }

    mutable BiasedLock lock_;
    std::vector<Counters> scopes_{1};
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
