/// Limits concurrent runs of all callers, and chooses which waiting run starts next.
#pragma once

#include "tightship/driver/request_metrics.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace tightship::driver {

/// Groups of a caller, the widest first, such as a model and an account. Callers of the same first
/// group alternate by their second group, and so on.
using Names = std::array<std::string, 4>;

/// Caller that may wait for a run permit. It must not be destroyed while it waits.
struct Place {
    Names names;
    int64_t priority = 0;              ///< the same for all callers with these four names
    RequestMetrics *metrics = nullptr; ///< metrics that count it while it waits; null for none
    std::function<void()> told{}; ///< called under the lock of `RunPermits` when it gets a permit

    std::condition_variable woken{};
    bool is_waiting = false;
    bool has_permit = false; ///< whether it got a permit while it waited
    bool has_left = false;
};

/// Limited permits to run. Groups of waiting callers alternate: a group goes behind the others of
/// its level when a run of one of its callers begins, and when it ends, so that a group with many
/// callers delays another by one run at most. At the last level the group with the highest priority
/// is first; within it callers keep their order. Any number of threads may call this.
class RunPermits {
  public:
    explicit RunPermits(int count) : count_(count), free_(count) {}
    RunPermits(const RunPermits &) = delete;
    RunPermits &operator=(const RunPermits &) = delete;

    int count() const { return count_; }

    /// Whether a permit is free.
    bool is_free() const;

    /// Returns how many permits are taken.
    int taken_count() const;

    /// Returns how many callers wait.
    size_t waiting_count() const;

    /// Takes a permit if one is free, which means that no caller waits.
    bool take_free();

    /// Takes a permit if one is free, unless the caller has left.
    bool take_free(const Place &place);

    /// Takes a permit if one is free, else queues the caller until `told` is called; returns
    /// whether one was taken. A caller that has left is not queued.
    bool join(Place &place);

    /// Takes a permit, waiting for at most `patience` if given. False if none came in time or the
    /// caller left before.
    bool take(Place &place, std::optional<std::chrono::nanoseconds> patience);

    /// Removes a caller, which gets no permit from now on; returns whether it was waiting. A permit
    /// that it has must still be given back.
    bool leave(Place &place);

    /// Gives back the permit of a caller with these names.
    void give_back(const Names &names);

  private:
    struct Group {
        uint64_t order = 0; ///< rank among the groups of a level
        std::map<std::string, Group> parts;
        std::list<Place *> waiting; ///< callers in order, at the last level
    };

    bool take_locked(const Place &place);

    /// Takes a permit if one is free; else queues the caller, unless it has left.
    bool take_or_enter(Place &place);
    void enter(Place &place);
    void remove(Place &place);
    void move_back(const Names &names);
    Place &next();

    const int count_;
    mutable std::mutex lock_;
    int free_; ///< 0 while a caller waits
    uint64_t order_ = 0;
    size_t waiting_count_ = 0;
    Group all_;
};

} // namespace tightship::driver
