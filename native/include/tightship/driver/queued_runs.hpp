/// Runs that wait for a run permit without occupying a thread.
#pragma once

#include "tightship/driver/run_permits.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

namespace tightship::driver {

/// Runs by number, each with a permit or waiting for one. Any number of threads may call this, but
/// one at a time for each run.
class QueuedRuns {
  public:
    /// Adds 1 to the eventfd `bell` for each permit that a waiting run gets. Both must outlive
    /// this.
    QueuedRuns(RunPermits &permits, int bell) : permits_(permits), bell_(bell) {}
    QueuedRuns(const QueuedRuns &) = delete;
    QueuedRuns &operator=(const QueuedRuns &) = delete;

    /// Takes a permit for a run of a new number, or queues it; returns whether it was taken. The
    /// tally counts the run while it waits, and must outlive the wait.
    bool join(int64_t run, Names names, int64_t priority, RequestMetrics &metrics);

    /// Returns the next waiting run that has got a permit; none if there is none.
    std::optional<int64_t> next();

    /// Removes a run; a permit that `next` has not reported yet is given back.
    void leave(int64_t run);

    /// Gives back the permit of a run that has ended.
    void give_back(int64_t run);

  private:
    RunPermits &permits_;
    const int bell_;
    std::mutex
        lock_; ///< guards the members below; taken after the lock of `permits_`, never before
    std::map<int64_t, Place> places_;
    std::deque<int64_t> come_;
};

} // namespace tightship::driver
