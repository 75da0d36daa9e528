/// A program whose primitives and memory are had anew for each call, as frameworks do it.
///
///   for each step: memory of the slots that begin ─ primitive ─ its scratch ─ run ─ all of that
///   back
#pragma once

#include "tightship/run/program.hpp"

#ifdef TIGHTSHIP_ONEDNN

namespace tightship {

/// Slots whose memory comes and goes together, that of object i of the lifetimes for `slots[i]`.
struct SlotGroup {
    size_t first; ///< step before which it comes
    size_t last;  ///< step after which it goes
    std::shared_ptr<const primitive::LifetimeManager> lifetimes;
    std::vector<uint32_t> slots;
};

/// Nanoseconds of one run by what they went to; steps have the rest.
struct StepwiseTimes {
    int64_t memory_ns = 0;     ///< obtaining and giving back memory, without the faults of its use
    int64_t primitives_ns = 0; ///< finding or compiling primitives
};

/// One run at a time, as many objects as threads. REQUIRES: the program is deferred and, as the
/// cache, outlives it; every operand is in an external slot.
class Stepwise {
  public:
    /// `scratch_slot` is that of the scratch of all primitives. Pools and what becomes of them are
    /// the cache's. Throws `resource::Misuse` where a group has no such step.
    Stepwise(const Program &program, onednn::PrimitiveCache &cache,
             std::shared_ptr<resource::MemoryResource> resource, std::vector<SlotGroup> groups,
             uint32_t scratch_slot);
    Stepwise(const Stepwise &) = delete;
    Stepwise &operator=(const Stepwise &) = delete;

    /// Points a slot at the caller's bytes for the next runs.
    void bind_external(uint32_t slot, void *data) { context_.bind_external(slot, data); }
    /// Points a slot at memory that primitives own, and keeps it.
    void bind_persistent(uint32_t slot, primitive::Persistent memory);

    Outcome run(Watch watch);
    const StepwiseTimes &times() const { return times_; } ///< of the last run

    const Program &program() const { return program_; }
    const onednn::PrimitiveCache &cache() const { return cache_; }
    /// Shows everything else that it keeps.
    void each_held(const std::function<void(const std::shared_ptr<const void> &)> &visit) const;

  private:
    struct Group {
        primitive::MemoryManager manager;
        std::vector<uint32_t> slots;
        primitive::Resource resource;
    };
    void begin(size_t step);
    void end(size_t step);
    void execute(size_t step);

    const Program &program_;
    onednn::PrimitiveCache &cache_;
    std::shared_ptr<resource::MemoryResource> resource_;
    uint32_t scratch_slot_;
    Context context_;
    std::vector<std::unique_ptr<Group>> groups_;
    std::vector<std::vector<Group *>> beginning_, ending_; ///< by step
    std::vector<primitive::Persistent> persistent_;
    StepwiseTimes times_;
};

} // namespace tightship

#endif
