/// Execution of a program with primitives and memory obtained for each call, as frameworks do.
///
///   each step: get memory of slots that begin, primitive, scratch ─ run ─ give scratch and slots
///              that end back
#pragma once

#include "tightship/run/program.hpp"

#ifdef TIGHTSHIP_ONEDNN

namespace tightship {

/// Slots whose memory is obtained and given back together; `slots[i]` is object i of `lifetimes`.
struct SlotGroup {
    size_t first; ///< step before which memory is obtained
    size_t last;  ///< step after which it is given back
    std::shared_ptr<const primitive::LifetimeManager> lifetimes;
    std::vector<uint32_t> slots;
};

/// Nanoseconds of one run by purpose; steps take the rest.
struct StepwiseTimes {
    int64_t memory_ns = 0;     ///< obtaining and giving back memory, without page faults on use
    int64_t primitives_ns = 0; ///< finding or compiling primitives
};

/// Runs once at a time; each thread has an object of its own. REQUIRES: the program is deferred; it
/// and the cache outlive this object; every operand is in an external slot.
class Stepwise {
  public:
    /// `scratch_slot` holds the scratch of every primitive. Pools, and whether they are kept, are
    /// those of the cache. Throws `resource::Misuse` if a group names a step that does not exist.
    Stepwise(const Program &program, onednn::PrimitiveCache &cache,
             std::shared_ptr<resource::MemoryResource> resource, std::vector<SlotGroup> groups,
             uint32_t scratch_slot);
    Stepwise(const Stepwise &) = delete;
    Stepwise &operator=(const Stepwise &) = delete;

    /// Points a slot at the caller's bytes for the next runs.
    void bind_external(uint32_t slot, void *data) { context_.bind_external(slot, data); }
    /// Points a slot at memory that primitives own, and keeps that alive.
    void bind_persistent(uint32_t slot, primitive::Persistent memory);

    Outcome run(Watch watch);
    const StepwiseTimes &times() const { return times_; } ///< of the last run

    const Program &program() const { return program_; }
    const onednn::PrimitiveCache &cache() const { return cache_; }
    /// Calls `visit` for everything else that it keeps alive.
    void each_held(const std::function<void(const std::shared_ptr<const void> &)> &visit) const;

  private:
    struct Group {
        primitive::MemoryManager manager;
        std::vector<uint32_t> slots;
        primitive::Resource resource;
    };
    void begin(size_t step);
    void end(size_t step);
    Outcome execute(size_t step, Watch &watch);

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
