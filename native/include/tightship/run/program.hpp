/// Execution of steps without Python: native kernels and oneDNN primitives over planned bytes.
///
///   Program   steps, and their operands as (space, offset); immutable once compiled
///   Context   operands bound to one arena; runs once at a time, each thread has its own
///   Control   a step that runs other programs, its bodies, in its scratch
#pragma once

#include "tightship/external_operands.hpp"
#include "tightship/kernel.hpp"
#include "tightship/memory_space.hpp"
#include "tightship/onednn/primitive_steps.hpp"
#include "tightship/run/control.hpp"
#include "tightship/run/step_graph.hpp"
#include "tightship/stop_flag.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tightship {

/// Outcome of a run, between two steps.
enum class Outcome { kDone, kStopped, kDeadline };

/// Checks between two steps whether a run must end.
class Watch {
  public:
    using Clock = std::chrono::steady_clock;

    /// Checks `stop` and the deadline, and every few milliseconds calls `poll`, which may throw.
    /// REQUIRES: `stop` and `poll` outlive it.
    Watch(const StopFlag &stop, std::optional<Clock::time_point> deadline,
          const std::function<void()> &poll)
        : stop_(stop), deadline_(deadline), poll_(poll) {}

    /// Returns `kDone` if the run may continue.
    Outcome look();
    Clock::time_point looked() const { return looked_; } ///< time of the last look
    /// Returns one for another thread of the run, which also stops once `is_ended` is set.
    Watch for_helper(const StopFlag &is_ended) const;

  private:
    const StopFlag &stop_;
    const StopFlag *is_ended_ = nullptr;
    std::optional<Clock::time_point> deadline_;
    const std::function<void()> &poll_;
    Clock::time_point polled_ = Clock::now(), looked_ = polled_;
};

class Program {
  public:
    Program() = default;
    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;

    /// Adds a step; operands in the order of `Kernel::run`. REQUIRES: not compiled yet.
    void add_kernel(std::shared_ptr<const Kernel> kernel, std::span<const Place> operands);
    /// Adds a step that runs the primitive last added to `primitives`.
    void add_primitive();
    /// Adds a program that control steps of this one run; it lives as long as this one.
    Program &add_body();
    /// Adds a step that runs bodies; its last operand is its scratch.
    /// REQUIRES: the bodies are added; every operand of theirs is external or in their arena.
    void add_control(Control control, std::span<const Place> operands);

    /// Generates the code of the primitives for `threads`.
    void compile(int threads);
    /// Lets each run obtain primitives for `threads`, as `Stepwise` does; compiles those of bodies.
    void defer(int threads);
    /// Sets the address of the weights. REQUIRES: `base` outlives the program's runs.
    void bind_weights(void *base);

    size_t step_count() const { return steps_.size(); }
    size_t body_count() const { return bodies_.size(); }
    int threads() const { return threads_; }

    onednn::PrimitiveSteps primitives;

  private:
    friend class Context;
    friend class Stepwise;
    struct Step {
        std::shared_ptr<const Kernel> kernel; ///< null for a primitive
        uint32_t first; ///< index of its first place; of a primitive, among the primitives
        uint32_t count;
        uint32_t control = kAbsent; ///< index among the control steps
    };
    bool calls_library() const;

    std::vector<Step> steps_;
    std::vector<Control> controls_;
    std::vector<std::unique_ptr<Program>> bodies_;
    std::vector<Place> places_; ///< operands of kernels
    uint32_t primitive_count_ = 0;
    char *weights_ = nullptr;
    int threads_ = 1;
};

/// Bytes of external slots that are the same in many runs.
class FixedOperands {
  public:
    FixedOperands();
    void add(uint32_t slot, void *data) { operands_.emplace_back(slot, data); }

  private:
    friend class Context;
    uint64_t number_; ///< unlike that of any other object of the process
    std::vector<std::pair<uint32_t, void *>> operands_;
};

class Context {
  public:
    /// REQUIRES: `program` is compiled, its weights bound; both outlive the context.
    Context(const Program &program, void *arena);
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;

    /// Points a slot at the caller's bytes for the next runs.
    void bind_external(uint32_t slot, void *data);
    /// Points slots at bytes that stay where they are, unless they were those of the last call.
    void bind_fixed(const FixedOperands &fixed);
    /// Forgets the operands of `bind_fixed`, as before their slots are pointed elsewhere.
    void forget_fixed() { fixed_ = 0; }

    /// Runs steps [first, last), checking `watch` before each. Unless `ends_ns` is null, the time
    /// of the steady clock after each step is written to it.
    Outcome run(size_t first, size_t last, Watch watch, int64_t *ends_ns = nullptr);

    /// Returns whether these steps took so little time when they last ran that a thread need not
    /// release a lock meanwhile. It must where operands decide how often a loop goes on.
    bool is_short(size_t first, size_t last) const {
        return short_ == std::pair(first, last) && first < last;
    }

    /// Runs the steps of a graph, up to `workers` at once, otherwise like `run`.
    /// REQUIRES: the program is compiled for one thread.
    Outcome run_at_once(StepRun &steps, int workers, Watch watch);

  private:
    friend class Stepwise;
    /// Contexts of the bodies of a control step, and what their slots were last bound to.
    struct Bodies {
        std::vector<std::unique_ptr<Context>> contexts;
        std::vector<std::vector<char *>> bound;
        char *scratch = nullptr;
    };
    /// Checks `watch` before each step, unless not `looks`.
    Outcome run_steps(size_t first, size_t last, Watch &watch, bool looks,
                      int64_t *ends_ns = nullptr);
    Outcome execute(const Program::Step &step, Watch &watch);
    /// Makes the bodies of a control step for the scratch that it has now.
    Bodies bodies_of(const Program::Step &step) const;
    Outcome choose(const Control &control, Bodies &bodies, std::span<char *const> operands,
                   Watch &watch);
    Outcome repeat(const Control &control, Bodies &bodies, std::span<char *const> operands,
                   Watch &watch);

    const Program &program_;
    onednn::BoundPrimitives primitives_;
    std::vector<char *> addresses_; ///< of kernel operands, in the order of the program's places
    ExternalOperands externals_;    ///< of kernels
    std::vector<Bodies> bodies_;    ///< of each control step
    uint64_t fixed_ = 0;            ///< number of the fixed operands that are bound; 0 for none
    std::pair<size_t, size_t> short_{}; ///< steps that last ran in little time; empty for none
};

} // namespace tightship
