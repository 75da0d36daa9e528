/// Who used freed memory last, and whether that is over.
#pragma once

#include "tightship/resource/virtual/fence.hpp"

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>

namespace tightship::resource {

/// A stream that has given memory back. What it gave back since its last fence is of one epoch, so
/// that giving back costs no fence of its own.
class StreamUse {
  public:
    explicit StreamUse(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

    /// Of what is given back now.
    uint64_t epoch() const { return epoch_; }
    /// Whether what was given back in an epoch is out of use.
    bool is_done(uint64_t epoch) const { return epoch <= done_; }
    /// Puts a fence behind all that was given back so far, and looks at those that are out.
    void poll();
    /// The same; waits for all of them, until `deadline`.
    void wait_until(std::chrono::steady_clock::time_point deadline);

  private:
    void seal();
    void look();

    std::shared_ptr<Stream> stream_;
    uint64_t epoch_ = 1;
    uint64_t done_ = 0;                                              // the last epoch that is over
    std::deque<std::pair<uint64_t, std::shared_ptr<Fence>>> fences_; // by rising epoch
};

} // namespace tightship::resource
