/// Primitives of a program, and their binding to one arena.
#pragma once

#include "tightship/external_operands.hpp"
#include "tightship/memory_space.hpp"

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive_cache.hpp"

namespace tightship::onednn {

class PrimitiveSteps {
  public:
    PrimitiveSteps() = default;
    PrimitiveSteps(const PrimitiveSteps &) = delete;
    PrimitiveSteps &operator=(const PrimitiveSteps &) = delete;
    ~PrimitiveSteps();

    /// Returns the index of an operand; equal descriptions at equal places are one operand.
    uint32_t operand(const MemoryDesc &desc, Place place);
    /// Adds a step. REQUIRES: each operand index comes from `operand`; not compiled yet.
    void add(std::shared_ptr<const PrimitiveDesc> desc,
             std::span<const std::pair<int, uint32_t>> arguments);

    /// Obtains the primitives for `threads` from the cache of the process, and releases the
    /// descriptions.
    void compile(int threads);
    /// Binds operands that lie in the weights.
    void bind_weights(char *base);

    bool empty() const { return steps_.empty(); }
    /// REQUIRES: not compiled.
    const PrimitiveDesc &desc(uint32_t step) const { return *descs_[steps_[step].primitive]; }

  private:
    friend class BoundPrimitives;
    struct Operand {
        MemoryDesc desc;
        Place place;
    };
    struct Step {
        uint32_t primitive; ///< index of its description, then of its compiled primitive
        uint32_t first, count;
        bool meets;
    };
    std::vector<Operand> operands_;
    std::vector<std::pair<int, uint32_t>> arguments_;
    std::vector<Step> steps_;
    std::vector<std::shared_ptr<const PrimitiveDesc>> descs_;
    std::vector<PrimitiveCache::Use> primitives_;
    std::vector<dnnl_memory_t> weights_; ///< by operand index; null outside the weights
};

/// Primitives bound to an arena. REQUIRES: weights of the steps are bound; steps outlive this.
class BoundPrimitives {
  public:
    BoundPrimitives(const PrimitiveSteps &steps, char *arena);
    ~BoundPrimitives();
    BoundPrimitives(const BoundPrimitives &) = delete;
    BoundPrimitives &operator=(const BoundPrimitives &) = delete;

    /// Points a slot at the caller's bytes for the next runs.
    void bind_external(uint32_t slot, char *data);
    /// REQUIRES: the steps are compiled.
    void execute(uint32_t step) const;
    /// Runs a step with a primitive made from its description.
    void execute(uint32_t step, const_dnnl_primitive_t primitive) const;

  private:
    explicit BoundPrimitives(const PrimitiveSteps &steps) : steps_(steps) {}

    const PrimitiveSteps &steps_;
    dnnl_stream_t stream_ = nullptr;
    std::vector<dnnl_memory_t> memories_; ///< owned; by operand index, null for weights
    std::vector<dnnl_exec_arg_t> arguments_;
    ExternalOperands externals_;
};

} // namespace tightship::onednn

#else

namespace tightship::onednn {

/// Empty, because the core is built without oneDNN.
struct PrimitiveSteps {
    void compile(int) {}
    void bind_weights(char *) {}
    bool empty() const { return true; }
};

struct BoundPrimitives {
    BoundPrimitives(const PrimitiveSteps &, char *) {}
    void bind_external(uint32_t, char *) {}
    void execute(uint32_t) const {}
};

/// Does nothing, because the core is built without oneDNN.
struct ThreadScope {
    explicit ThreadScope(int) {}
};

} // namespace tightship::onednn

#endif
