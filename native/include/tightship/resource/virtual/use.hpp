/// Last use of freed memory by a stream, and whether that use is over.
#pragma once

#include "tightship/resource/virtual/fence.hpp"

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

namespace tightship::resource {

/// Stream that has freed memory. Memory freed since its last fence shares one epoch, so that not
/// every free needs a fence.
class StreamUse {
  public:
    explicit StreamUse(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

    /// Returns the epoch of memory that is freed now.
    uint64_t epoch() const { return epoch_; }
    /// Returns whether memory freed in an epoch is out of use.
    bool is_done(uint64_t epoch) const { return epoch <= done_; }
    /// Puts a fence behind the current epoch, and checks the fences that are pending.
    void poll();
    /// Polls, and waits for all pending fences until `deadline`.
    void wait_until(std::chrono::steady_clock::time_point deadline);

  private:
    void seal();
    void look();

    std::shared_ptr<Stream> stream_;
    uint64_t epoch_ = 1;
    uint64_t done_ = 0;                                              // last epoch that is over
    std::deque<std::pair<uint64_t, std::shared_ptr<Fence>>> fences_; // by rising epoch
};

} // namespace tightship::resource
