/// Quarantine of freed blocks, which may not be handed out yet.
#pragma once

#include "tightship/resource/fork_guard.hpp"
#include "tightship/resource/live_blocks.hpp"

#include <deque>
#include <mutex>

namespace tightship::resource {

class Quarantine final : private Forkable {
  public:
    explicit Quarantine(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

    void add(LiveBlock block);
    bool contains(const void *pointer) const;
    /// Removes the oldest block; false if there is none, or if all are within the limit and not
    /// `all` are to leave.
    bool leaves(bool all, LiveBlock &block);
    size_t size_bytes() const;
    /// Calls `look` with each block, under the lock.
    template <typename Look> void each(Look look) const {
        const std::lock_guard lock(mutex_);
        for (const LiveBlock &block : blocks_)
            look(block);
    }

  private:
    void before_fork() override { mutex_.lock(); }
    void after_fork(bool) override { mutex_.unlock(); }

    size_t limit_bytes_;
    mutable std::mutex mutex_;
    std::deque<LiveBlock> blocks_; // the oldest first
    size_t size_bytes_ = 0;        // their sum
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
