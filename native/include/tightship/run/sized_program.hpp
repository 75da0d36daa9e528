/// Execution of steps whose shapes only a run knows, and of the planned steps between them.
///
///   SizedProgram   steps over numbered values; immutable once all are added
///   SizedContext   the values of one run at a time, bound to one arena
#pragma once

#include "tightship/run/program.hpp"
#include "tightship/sized/operators.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace tightship {

constexpr uint32_t kNoValue = UINT32_MAX;

class SizedProgram {
  public:
    using Values = std::vector<uint32_t>; ///< kNoValue for an operand that is left out

    /// Adds a step of an operator, or of none if its caller runs it. `dying` values have no later
    /// reader.
    void add(std::shared_ptr<const kernels::SizedOperator> computes, Values reads, Values writes,
             Values dying);
    /// Adds a step that runs planned steps [first, last).
    void add_planned(size_t first, size_t last);

    /// Makes room for values that no step reads or writes.
    void reserve(size_t values) { value_count_ = std::max(value_count_, values); }

    size_t step_count() const { return steps_.size(); }
    size_t value_count() const { return value_count_; }

  private:
    friend class SizedContext;
    struct Step {
        std::shared_ptr<const kernels::SizedOperator> computes;
        Values reads, writes, dying;
        size_t first = 0, last = 0; ///< planned steps
    };

    std::vector<Step> steps_;
    size_t value_count_ = 0;
};

/// Result of `SizedContext::run`: the step that did not run, or their number.
struct SizedProgress {
    size_t step;
    Outcome outcome;
};

class SizedContext {
  public:
    /// REQUIRES: `program` and `planned`, null without planned steps, outlive it.
    SizedContext(const SizedProgram &program, Context *planned);
    SizedContext(const SizedContext &) = delete;
    SizedContext &operator=(const SizedContext &) = delete;

    /// Gives a value a place in planned bytes, at which it stays whatever runs. Throws
    /// std::out_of_range if the program lacks the value.
    void bind(uint32_t value, kernels::Tensor tensor);
    /// Gives a value that is not planned for this run.
    void set(uint32_t value, kernels::Tensor tensor) { values_.at(value) = std::move(tensor); }
    /// Returns a value, without data before a step has computed it.
    const kernels::Tensor &value(uint32_t value) const { return values_.at(value); }
    /// Drops the values that die with a step which its caller ran.
    void release(size_t step);
    /// Drops all values that are not planned.
    void clear();

    /// Runs steps from `first` on, checking `watch` before each, up to one that its caller has to
    /// run: it lacks an operator, or its operator leaves these operands to another kernel. Planned
    /// steps run unless not `runs_planned`.
    SizedProgress run(size_t first, size_t last, bool runs_planned, Watch watch,
                      const kernels::TensorRoom &room, int threads);

    /// Runs all steps; returns false at one that its caller would have to run.
    bool run_all(const kernels::TensorRoom &room, int threads);

  private:
    bool compute(const SizedProgram::Step &step, const kernels::TensorRoom &room, int threads);
    bool keep(const SizedProgram::Step &step);
    bool is_spare(const SizedProgram::Step &step, uint32_t value) const;
    void drop(uint32_t value);

    const SizedProgram &program_;
    Context *planned_;
    std::vector<kernels::Tensor> values_;
    std::vector<bool> is_planned_;
    std::vector<const kernels::Tensor *> operands_; ///< of the step that runs
    std::vector<kernels::Tensor> results_;
};

} // namespace tightship
