/// Concurrent execution of steps by several workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tightship {

/// Dependencies between the steps [first, last). Immutable.
class StepGraph {
  public:
    /// Makes the graph of steps of which, when several are ready, the first in `order` goes first,
    /// which has all of them, counted from 0; if it is empty, they go in their own order.
    /// REQUIRES: edges lead from a step to a later one, both within [first, last).
    StepGraph(size_t first, size_t last, std::span<const std::pair<int64_t, int64_t>> edges,
              std::span<const uint32_t> order = {});

    size_t first() const { return first_; }
    size_t count() const { return waits_.size(); }

    /// Number of steps that each step waits for; steps count from 0 here.
    std::span<const uint32_t> waits() const { return waits_; }
    /// Steps that wait for `step`, in ascending order.
    std::span<const uint32_t> after(size_t step) const {
        return {after_.data() + begin_[step], begin_[step + 1] - begin_[step]};
    }
    uint32_t rank(size_t step) const { return rank_[step]; } ///< place of a step in the order
    uint32_t step_at(size_t rank) const { return step_at_[rank]; }

  private:
    size_t first_;
    std::vector<uint32_t> waits_;
    std::vector<uint32_t> begin_; ///< index of each step's first entry in `after_`, then the end
    std::vector<uint32_t> after_;
    std::vector<uint32_t> rank_;
    std::vector<uint32_t> step_at_;
};

/// Runs every step once, up to `workers` at a time, each after those that it waits for; among steps
/// that are ready the first in the graph's order goes first. Allocates in the constructor only.
class StepRun {
  public:
    explicit StepRun(const StepGraph &graph);

    /// Calls `execute` with the program's index of each step; returns whether all steps have run.
    /// If it throws, no further step begins, and the first error is rethrown when running steps
    /// have ended. The same holds for `look`, which the calling thread calls before its steps and
    /// while it waits for others; if that returns false, no further step begins.
    bool run(int workers, void *data, void (*execute)(void *data, size_t step),
             bool (*look)(void *data));

  private:
    struct State;
    const StepGraph &graph_;
    std::vector<uint32_t> waits_; ///< remaining waits of steps that have not begun
    std::vector<uint32_t> ready_; ///< ranks, a heap with the first on top
};

} // namespace tightship
