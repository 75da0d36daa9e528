/// Record of live blocks, kept outside of them.
#pragma once

#include "tightship/resource/fork_guard.hpp"
#include "tightship/resource/memory_resource.hpp"

#include <map>
#include <mutex>
#include <vector>

namespace tightship::resource {

struct LiveBlock {
    uintptr_t start = 0;
    size_t size_bytes = 0; ///< by its request
    size_t alignment = 0;
    uint64_t number = 0; ///< counts from 1 in the order of allocation
    std::string origin;  ///< code that requested it; empty if not recorded
};

class LiveBlocks final : private Forkable {
  public:
    /// Adds a block; returns false, and changes nothing, if memory for the record is refused.
    bool add(void *pointer, size_t size_bytes, size_t alignment, std::string origin = {});
    /// Removes a block, or returns why it is not live.
    Freed remove(void *pointer, size_t size_bytes, size_t alignment, LiveBlock &removed);
    /// Restores a block that `remove` removed, with its number.
    void restore(LiveBlock block);

    Range range_of(const void *pointer) const;
    size_t size_of(const void *pointer) const;
    size_t size_bytes() const;
    size_t count() const;
    std::vector<LiveBlock> all() const; ///< the oldest first
    /// Calls `look` with each block, under the lock.
    template <typename Look> void each(Look look) const {
        const std::lock_guard lock(mutex_);
        for (const auto &[start, block] : blocks_)
            look(block);
    }

  private:
    using Blocks = std::map<uintptr_t, LiveBlock>;

    Blocks::const_iterator find(uintptr_t address) const;

    void before_fork() override { mutex_.lock(); }
    void after_fork(bool) override { mutex_.unlock(); }

    mutable std::mutex mutex_;
    Blocks blocks_;
    size_t size_bytes_ = 0; // their sum
    uint64_t last_number_ = 0;
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
