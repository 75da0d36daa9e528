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

/// Groups that a caller belongs to: a model, an account that calls it, and two further levels, each
/// within the one before. Groups with the same first name alternate by their second name, and so
/// on. Callers without an account have an empty name there.
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
///
/// Groups of the first level are models, each with the accounts that wait for it alone, and
/// accounts that wait for several models: an account gets no more permits by calling more models,
/// and many accounts at one model delay another model's caller no longer than one account would.
/// A model whose run has ended goes behind the account of that run, which then calls its other
/// models first; accounts that call one model together may so have two runs for one.
class RunPermits {
  public:
    explicit RunPermits(int count) : count_(count), free_(count) {}
    RunPermits(const RunPermits &) = delete;
    RunPermits &operator=(const RunPermits &) = delete;

    int count() const { return count_; }

    /// Returns whether a permit is free.
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
        uint64_t order = 0;     ///< groups of a level are served in this order
        uint64_t served_at = 0; ///< of a model: when a run of any caller began or ended
        std::map<std::string, Group> parts;
        std::list<Place *> waiting; ///< callers in order, at the last level
    };

    struct Account {
        uint64_t order = 0;     ///< among the groups of the first level
        size_t model_count = 0; ///< models that its callers wait for
    };

    bool take_locked(const Place &place);

    /// Takes a permit if one is free; else queues the caller, unless it has left.
    bool take_or_enter(Place &place);
    void enter(Place &place);
    void remove(Place &place);
    /// Returns whether an account is a group of the first level: it waits for several models. The
    /// model of `ended`, whose caller has just run, counts as one of them.
    bool has_several(const std::string &account, const Names &ended) const;
    void move_back(const Names &names, const Names &ended);
    Place &next(const Names &ended);

    const int count_;
    mutable std::mutex lock_;
    int free_; ///< 0 while a caller waits
    uint64_t order_ = 0;
    size_t waiting_count_ = 0;
    Group all_;
    std::map<std::string, Account> accounts_; ///< those with callers that wait
};

} // namespace tightship::driver
