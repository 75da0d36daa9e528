/// Steps that several workers run at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tightship {

/// Which of the steps [first, last) wait for which. Immutable.
class StepGraph {
  public:
    /// REQUIRES: edges lead from a step to a later one, both within [first, last).
    StepGraph(size_t first, size_t last, std::span<const std::pair<int64_t, int64_t>> edges);

    size_t first() const { return first_; }
    size_t count() const { return waits_.size(); }

    /// How many steps a step waits for; steps count from 0 here.
    std::span<const uint32_t> waits() const { return waits_; }
    /// The steps that wait for a step, rising.
    std::span<const uint32_t> after(size_t step) const {
        return {after_.data() + begin_[step], begin_[step + 1] - begin_[step]};
    }

  private:
    size_t first_;
    std::vector<uint32_t> waits_;
    std::vector<uint32_t> begin_; ///< of each step's, and the end of all
    std::vector<uint32_t> after_;
};

/// Runs every step once, up to `workers` at a time, each after those that it waits for; of those
/// that wait for nothing the first goes first. Allocates when it is made, and then no more.
class StepRun {
  public:
    explicit StepRun(const StepGraph &graph);

    /// `execute(step)`, counted as the program counts, may throw: no further step begins then, and
    /// the first error is thrown when those under way have ended. The same goes for `look`, which
    /// the calling thread calls before its steps and while it waits for others; where that
    /// returns false no further step begins. Whether all have run.
    bool run(int workers, void *data, void (*execute)(void *data, size_t step),
             bool (*look)(void *data));

  private:
    struct State;
    const StepGraph &graph_;
    std::vector<uint32_t> waits_; ///< of steps that have not begun
    std::vector<uint32_t> ready_; ///< a heap, the first step on top
};

} // namespace tightship
