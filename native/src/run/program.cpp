#include "tightship/run/program.hpp"

#include <atomic>
#include <cassert>

namespace tightship {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);
/// Less than what it costs another thread to begin, or this one to take a lock back from it.
constexpr auto kShort = std::chrono::microseconds(20);

std::atomic<uint64_t> fixed_count = 0;

} // namespace

FixedOperands::FixedOperands() : number_(++fixed_count) {}

Outcome Watch::look() {
    if (stop_.load(std::memory_order_relaxed))
        return Outcome::kStopped;
    const auto now = Clock::now();
    if (deadline_ && now >= *deadline_)
        return Outcome::kDeadline;
    if (now - polled_ >= kPollInterval) {
        poll_();
        polled_ = now;
    }
    return Outcome::kDone;
}

void Program::add_kernel(std::shared_ptr<const Kernel> kernel, std::span<const Place> operands) {
    steps_.push_back({std::move(kernel), static_cast<uint32_t>(places_.size()),
                      static_cast<uint32_t>(operands.size())});
    places_.insert(places_.end(), operands.begin(), operands.end());
}

void Program::add_primitive() {
    steps_.push_back({nullptr, primitive_count_++, 0});
}

void Program::compile(int threads) {
    threads_ = threads;
    primitives.compile(threads);
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
    if (!program_.primitives.empty())
        scope.emplace(program_.threads_);
    const auto began = Watch::Clock::now();
    short_ = {};
    for (size_t index = first; index < last; ++index) {
        if (const Outcome outcome = watch.look(); outcome != Outcome::kDone)
            return outcome;
        execute(program_.steps_[index]);
        if (ends_ns != nullptr)
            *ends_ns++ = std::chrono::nanoseconds(Watch::Clock::now().time_since_epoch()).count();
    }
    if (Watch::Clock::now() - began < kShort)
        short_ = {first, last};
    return Outcome::kDone;
}

Outcome Context::run_at_once(StepRun &steps, int workers, Watch watch) {
    assert(program_.threads_ == 1);
    struct Run {
        Context &context;
        Watch watch;
        Outcome outcome = Outcome::kDone;
    } run{*this, watch};
    // Other workers may be through before this thread looks for the first time.
    if (run.outcome = run.watch.look(); run.outcome != Outcome::kDone)
        return run.outcome;
    const auto execute = [](void *of_run, size_t step) {
        Context &context = static_cast<Run *>(of_run)->context;
        std::optional<onednn::ThreadScope> scope;
        if (!context.program_.primitives.empty())
            scope.emplace(1);
        context.execute(context.program_.steps_[step]);
    };
    const auto look = [](void *of_run) {
        Run &run = *static_cast<Run *>(of_run);
        run.outcome = run.watch.look();
        return run.outcome == Outcome::kDone;
    };
    steps.run(workers, &run, execute, look);
    return run.outcome;
}

void Context::execute(const Program::Step &step) {
    if (step.kernel == nullptr)
        primitives_.execute(step.first);
    else
        step.kernel->run({addresses_.data() + step.first, step.count}, program_.threads_);
}

} // namespace tightship
