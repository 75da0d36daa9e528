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

/// Groups that a caller belongs to, the widest first, such as a model and an account. Groups with
/// the same first name share turns by their second name, and so on.
using Names = std::array<std::string, 4>;

/// A caller who waits for a turn. `RunPermits` must not be waiting with it when it is destroyed.
struct Place {
    Names names;
    int64_t priority = 0;              ///< of all its callers' with the same four names
    RequestMetrics *metrics = nullptr; ///< where it is counted while it waits; none if null
    std::function<void()> told{}; ///< called under the lock of `RunPermits` when its turn has come

    std::condition_variable woken{};
    bool is_waiting = false;
    bool has_permit = false; ///< it has come while the caller was waiting
    bool has_left = false;
};

/// Turns at running something. Groups of waiting callers take them one after another: a group goes
/// behind the others of its level when a turn of one of its callers begins, and when it ends. So a
/// group with many callers delays another by one turn at most. Of the last level the group with the
/// highest priority is first; within it callers keep their order. Any number of threads may ask.
class RunPermits {
  public:
    explicit RunPermits(int count) : count_(count), free_(count) {}
    RunPermits(const RunPermits &) = delete;
    RunPermits &operator=(const RunPermits &) = delete;

    int count() const { return count_; }

    /// Whether a turn could be taken without a wait.
    bool is_free() const;

    /// How many turns are taken.
    int taken_count() const;

    /// How many callers wait.
    size_t waiting_count() const;

    /// Takes a turn if one is free, which means that no caller waits.
    bool take_free();

    /// Likewise, unless the caller has left.
    bool take_free(const Place &place);

    /// Takes a turn if one is free, and else has the caller wait until it is `told`; whether the
    /// turn was taken at once. A caller who has left is told nothing.
    bool join(Place &place);

    /// Takes a turn, waiting for at most `patience` where one is given. False if none came in time
    /// or the caller left before one came.
    bool take(Place &place, std::optional<std::chrono::nanoseconds> patience);

    /// The caller wants no turn any more, and is given none from now on; whether it was waiting.
    /// One whose turn has come already still has to give it back.
    bool leave(Place &place);

    /// A turn ends that a caller of these names had.
    void give_back(const Names &names);

  private:
    struct Group {
        uint64_t order = 0; ///< groups of a level are served in this order
        std::map<std::string, Group> parts;
        std::list<Place *> waiting; ///< of the last level, in order
    };

    bool take_locked(const Place &place);

    /// Takes a turn if one is free; else has the caller wait, unless it has left.
    bool take_or_enter(Place &place);
    void enter(Place &place);
    void remove(Place &place);
    void move_back(const Names &names);
    Place &next();

    const int count_;
    mutable std::mutex lock_;
    int free_; ///< 0 while somebody waits
    uint64_t order_ = 0;
    size_t waiting_count_ = 0;
    Group all_;
};

} // namespace tightship::driver
