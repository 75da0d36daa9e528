/// Runs that wait for a turn while no thread does.
#pragma once

#include "tightship/driver/run_permits.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

namespace tightship::driver {

/// Runs by number, each waiting for a turn or having one. Any number of threads may call this, of
/// one run one at a time.
class QueuedRuns {
  public:
    /// An eventfd is added 1 to for each turn that comes to a run that has waited. Both outlive
    /// this.
    QueuedRuns(RunPermits &permits, int bell) : permits_(permits), bell_(bell) {}
    QueuedRuns(const QueuedRuns &) = delete;
    QueuedRuns &operator=(const QueuedRuns &) = delete;

    /// A run of a new number takes a turn, or waits for one; whether it was taken at once. The
    /// tally, which counts the run while it waits, outlives that.
    bool join(int64_t run, Names names, int64_t priority, RequestMetrics &metrics);

    /// The next waiting run that has been given a turn; none if there is none.
    std::optional<int64_t> next();

    /// A run wants no turn any more. If one has come that `next` has not told, it is given back.
    void leave(int64_t run);

    /// A run that had a turn has ended.
    void give_back(int64_t run);

  private:
    RunPermits &permits_;
    const int bell_;
    std::mutex
        lock_; ///< of what follows; taken under that of `permits_`, never the other way round
    std::map<int64_t, Place> places_;
    std::deque<int64_t> come_;
};

} // namespace tightship::driver
