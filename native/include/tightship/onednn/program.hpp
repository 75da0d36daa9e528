/// Steps that run without Python: primitives and plain copies over planned bytes.
///
///   Program   what runs and where its operands are, as (space, offset); immutable once compiled
///   Context   one arena's worth of operands; one run at a time, as many contexts as threads
#pragma once

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"
#include "tightship/stop_flag.hpp"

#include <chrono>
#include <functional>
#include <optional>

namespace tightship::onednn {

/// What an offset is counted from. External slots (inputs, outputs) follow.
enum Space : uint32_t { kArena = 0, kWeights = 1, kExternal = 2 };

/// `offset_bytes` from the base of `space`; `space - kExternal` is the slot of an external one.
struct Place {
    uint32_t space;
    int64_t offset_bytes;
    bool operator==(const Place &) const = default;
};

/// How a run ended, between two steps.
enum class Outcome { kDone, kStopped, kDeadline };

class Program {
  public:
    Program() = default;
    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;
    ~Program();

    /// Index of an operand; equal descriptions at equal places are one operand.
    uint32_t operand(const MemoryDesc &desc, Place place);
    /// REQUIRES: each operand index comes from `operand`; not compiled yet.
    void add_primitive(std::shared_ptr<const PrimitiveDesc> desc,
                       std::span<const std::pair<int, uint32_t>> arguments);
    void add_copy(Place from, Place to, int64_t size_bytes);

    /// Generates the code of the primitives for `threads`, once for those that are alike, and
    /// lets go of the descriptions.
    void compile(int threads);
    /// Binds operands that lie in the weights; REQUIRES `base` to outlive the program's runs.
    void bind_weights(void *base);

    size_t step_count() const { return steps_.size(); }
    int threads() const { return threads_; }

  private:
    friend class Context;
    struct Operand {
        MemoryDesc desc;
        Place place;
    };
    struct Step {
        int32_t primitive; ///< index of its description, then of what was compiled; -1 for a copy
        uint32_t first, count;
        Place from{}, to{};
        int64_t size_bytes = 0;
    };
    std::vector<Operand> operands_;
    std::vector<std::pair<int, uint32_t>> arguments_;
    std::vector<Step> steps_;
    std::vector<std::shared_ptr<const PrimitiveDesc>> descs_;
    std::vector<Primitive> primitives_;
    std::vector<dnnl_memory_t> weights_; ///< by operand index; null outside the weights
    char *weights_base_ = nullptr;
    int threads_ = 1;
};

class Context {
  public:
    /// REQUIRES: `program` is compiled, its weights bound; both outlive the context.
    Context(const Program &program, void *arena);
    ~Context();
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;

    /// Points a slot at the caller's bytes for the next runs.
    void bind_external(uint32_t slot, void *data);

    /// Runs steps [first, last). Between steps it looks at `stop`, at the deadline, and, every
    /// few milliseconds, calls `poll`, which may throw.
    Outcome run(size_t first, size_t last, const StopFlag &stop,
                std::optional<std::chrono::steady_clock::time_point> deadline,
                const std::function<void()> &poll);

  private:
    void execute(const Program::Step &step);
    char *address(Place place) const;

    const Program &program_;
    char *arena_;
    dnnl_stream_t stream_ = nullptr;
    std::vector<dnnl_memory_t> memories_; ///< owned; by operand index, null for weights
    std::vector<dnnl_exec_arg_t> arguments_;
    std::vector<char *> externals_;
};

} // namespace tightship::onednn

#endif
