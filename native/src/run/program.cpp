#include "tightship/run/program.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <thread>

namespace tightship {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);
/// Less than what it costs another thread to begin, or this one to take a lock back from it.
constexpr auto kShort = std::chrono::microseconds(20);

std::atomic<uint64_t> fixed_count = 0;
const std::function<void()> kNoPoll = [] {}; ///< of threads that no signal is for

/// Sets a flag at the end of its scope, also by an exception, unless told that a run goes on.
class EndedUnless {
  public:
    explicit EndedUnless(StopFlag &is_ended) : is_ended_(is_ended) {}
    ~EndedUnless() {
        if (!goes_on_)
            is_ended_ = true;
    }
    EndedUnless(const EndedUnless &) = delete;
    EndedUnless &operator=(const EndedUnless &) = delete;
    bool unless(bool goes_on) { return goes_on_ = goes_on; }

  private:
    StopFlag &is_ended_;
    bool goes_on_ = false;
};

} // namespace

FixedOperands::FixedOperands() : number_(++fixed_count) {}

Outcome Watch::look() {
    if (stop_.load(std::memory_order_relaxed) ||
        (is_ended_ != nullptr && is_ended_->load(std::memory_order_relaxed)))
        return Outcome::kStopped;
    looked_ = Clock::now();
    if (deadline_ && looked_ >= *deadline_)
        return Outcome::kDeadline;
    if (looked_ - polled_ >= kPollInterval) {
        poll_();
        polled_ = looked_;
    }
    return Outcome::kDone;
}

Watch Watch::for_helper(const StopFlag &is_ended) const {
    Watch other(stop_, deadline_, kNoPoll);
    other.is_ended_ = &is_ended;
    return other;
}

void Program::add_kernel(std::shared_ptr<const Kernel> kernel, std::span<const Place> operands) {
    steps_.push_back({std::move(kernel), static_cast<uint32_t>(places_.size()),
                      static_cast<uint32_t>(operands.size())});
    places_.insert(places_.end(), operands.begin(), operands.end());
}

void Program::add_primitive() {
    steps_.push_back({nullptr, primitive_count_++, 0});
}

Program &Program::add_body() {
    return *bodies_.emplace_back(std::make_unique<Program>());
}

void Program::add_control(Control control, std::span<const Place> operands) {
    steps_.push_back({nullptr, static_cast<uint32_t>(places_.size()),
                      static_cast<uint32_t>(operands.size()),
                      static_cast<uint32_t>(controls_.size())});
    places_.insert(places_.end(), operands.begin(), operands.end());
    controls_.push_back(std::move(control));
}

void Program::compile(int threads) {
    threads_ = threads;
    primitives.compile(threads);
    for (const auto &body : bodies_)
        body->compile(threads);
}

void Program::defer(int threads) {
    threads_ = threads;
    for (const auto &body : bodies_)
        body->compile(threads);
}

bool Program::calls_library() const {
    return !primitives.empty() ||
           std::ranges::any_of(bodies_, [](const auto &body) { return body->calls_library(); });
}

void Program::bind_weights(void *base) {
    weights_ = static_cast<char *>(base);
    primitives.bind_weights(weights_);
}

Context::Context(const Program &program, void *arena)
    : program_(program), primitives_(program.primitives, static_cast<char *>(arena)) {
    for (const Place place : program.places_) {
        char *base = place.space == kArena     ? static_cast<char *>(arena)
                     : place.space == kWeights ? program.weights_
                                               : nullptr;
        addresses_.push_back(base == nullptr ? nullptr : base + place.offset_bytes);
        externals_.add(place);
    }
    externals_.sort();
    for (const Program::Step &step : program.steps_)
        if (step.control != kAbsent)
            bodies_.push_back(bodies_of(step));
}

Context::Bodies Context::bodies_of(const Program::Step &step) const {
    Bodies bodies;
    bodies.scratch = addresses_[step.first + step.count - 1];
    for (const ControlBody &body : program_.controls_[step.control].bodies) {
        bodies.contexts.push_back(
            std::make_unique<Context>(*program_.bodies_[body.program], bodies.scratch));
        bodies.bound.emplace_back(body.bound.size(), nullptr);
    }
    return bodies;
}

void Context::bind_external(uint32_t slot, void *data) {
    primitives_.bind_external(slot, static_cast<char *>(data));
    for (const auto &[space, index] : externals_.of(slot))
        addresses_[index] = static_cast<char *>(data) + program_.places_[index].offset_bytes;
}

void Context::bind_fixed(const FixedOperands &fixed) {
    if (fixed.number_ == fixed_)
        return;
    for (const auto &[slot, data] : fixed.operands_)
        bind_external(slot, data);
    fixed_ = fixed.number_;
}

Outcome Context::run(size_t first, size_t last, Watch watch, int64_t *ends_ns) {
    assert(last <= program_.steps_.size());
    std::optional<onednn::ThreadScope> scope;
    if (program_.calls_library())
        scope.emplace(program_.threads_);
    const auto began = Watch::Clock::now();
    short_ = {};
    if (const Outcome outcome = run_steps(first, last, watch, true, ends_ns);
        outcome != Outcome::kDone)
        return outcome;
    if (program_.controls_.empty() && Watch::Clock::now() - began < kShort)
        short_ = {first, last};
    return Outcome::kDone;
}

Outcome Context::run_steps(size_t first, size_t last, Watch &watch, bool looks, int64_t *ends_ns) {
    for (size_t index = first; index < last; ++index) {
        Outcome outcome = looks ? watch.look() : Outcome::kDone;
        if (outcome == Outcome::kDone)
            outcome = execute(program_.steps_[index], watch);
        if (outcome != Outcome::kDone)
            return outcome;
        if (ends_ns != nullptr)
            *ends_ns++ = std::chrono::nanoseconds(Watch::Clock::now().time_since_epoch()).count();
    }
    return Outcome::kDone;
}

Outcome Context::run_at_once(StepRun &steps, int workers, Watch watch) {
    assert(program_.threads_ == 1);
    struct Run {
        Context &context;
        Watch watch;
        std::thread::id caller = std::this_thread::get_id();
        Outcome outcome = Outcome::kDone;             ///< as the caller saw it
        StopFlag is_ended = false;                    ///< for loops that other threads are in
        std::atomic<Outcome> within = Outcome::kDone; ///< of a loop that did not end by itself
    } run{.context = *this, .watch = watch};
    // Other workers may be through before this thread looks for the first time.
    if (run.outcome = run.watch.look(); run.outcome != Outcome::kDone)
        return run.outcome;
    const auto execute = [](void *of_run, size_t index) {
        Run &run = *static_cast<Run *>(of_run);
        const Program &program = run.context.program_;
        std::optional<onednn::ThreadScope> scope;
        if (program.calls_library())
            scope.emplace(1);
        const Program::Step &step = program.steps_[index];
        Outcome outcome;
        if (std::this_thread::get_id() == run.caller) {
            outcome = run.context.execute(step, run.watch);
        } else {
            Watch own = run.watch.for_helper(run.is_ended);
            outcome = run.context.execute(step, own);
        }
        if (outcome != Outcome::kDone)
            run.within = outcome;
    };
    const auto look = [](void *of_run) {
        Run &run = *static_cast<Run *>(of_run);
        EndedUnless ended(run.is_ended);
        run.outcome = run.watch.look();
        if (run.outcome == Outcome::kDone)
            run.outcome = run.within;
        return ended.unless(run.outcome == Outcome::kDone);
    };
    steps.run(workers, &run, execute, look);
    return run.outcome == Outcome::kDone ? run.within.load() : run.outcome;
}

Outcome Context::execute(const Program::Step &step, Watch &watch) {
    const std::span<char *const> operands(addresses_.data() + step.first, step.count);
    if (step.kernel != nullptr) {
        step.kernel->run(operands, program_.threads_);
    } else if (step.control == kAbsent) {
        primitives_.execute(step.first);
    } else {
        const Control &control = program_.controls_[step.control];
        Bodies &bodies = bodies_[step.control];
        return bodies.contexts.size() > 1 ? choose(control, bodies, operands, watch)
                                          : repeat(control, bodies, operands, watch);
    }
    return Outcome::kDone;
}

} // namespace tightship
