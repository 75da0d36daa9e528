#ifdef TIGHTSHIP_ONEDNN

#include "tightship/run/stepwise.hpp"

namespace tightship {

namespace {

/// Adds the duration of a scope to a counter of nanoseconds.
class Timed {
  public:
    explicit Timed(int64_t &total) : total_(total) {}
    ~Timed() { total_ += std::chrono::nanoseconds(Watch::Clock::now() - start_).count(); }
    Timed(const Timed &) = delete;
    Timed &operator=(const Timed &) = delete;

  private:
    int64_t &total_;
    Watch::Clock::time_point start_ = Watch::Clock::now();
};

} // namespace

Stepwise::Stepwise(const Program &program, onednn::PrimitiveCache &cache,
                   std::shared_ptr<resource::MemoryResource> resource,
                   std::vector<SlotGroup> groups, uint32_t scratch_slot)
    : program_(program), cache_(cache), resource_(std::move(resource)), scratch_slot_(scratch_slot),
      context_(program, nullptr), beginning_(program.step_count()), ending_(program.step_count()) {
    for (SlotGroup &group : groups) {
        if (group.first > group.last || group.last >= program.step_count())
            throw resource::Misuse("A group of slots lives from step " +
                                   std::to_string(group.first) + " to " +
                                   std::to_string(group.last) + " of a program of " +
                                   std::to_string(program.step_count()) + " steps.");
        groups_.emplace_back(new Group{
            {std::move(group.lifetimes), cache.pools(), cache.keep()}, std::move(group.slots), {}});
        beginning_[group.first].push_back(groups_.back().get());
        ending_[group.last].push_back(groups_.back().get());
    }
}

void Stepwise::bind_persistent(uint32_t slot, primitive::Persistent memory) {
    context_.bind_external(slot, memory.data);
    persistent_.push_back(std::move(memory));
}

void Stepwise::each_held(
    const std::function<void(const std::shared_ptr<const void> &)> &visit) const {
    visit(resource_);
    for (const auto &group : groups_)
        visit(group->manager.lifetimes());
    for (const primitive::Persistent &memory : persistent_)
        visit(memory.owner);
}

Outcome Stepwise::run(Watch watch) {
    times_ = {};
    const onednn::ThreadScope scope(program_.threads());
    struct Ending { // ends groups of a run that stops early
        ~Ending() {
            for (const auto &group : groups)
                group->resource = {};
        }
        std::vector<std::unique_ptr<Group>> &groups;
    } const ending{groups_};
    for (size_t step = 0; step < program_.step_count(); ++step) {
        if (const Outcome outcome = watch.look(); outcome != Outcome::kDone)
            return outcome;
        begin(step);
        if (const Outcome outcome = execute(step, watch); outcome != Outcome::kDone)
            return outcome;
        end(step);
    }
    return Outcome::kDone;
}

void Stepwise::begin(size_t step) {
    const Timed timed(times_.memory_ns);
    for (Group *group : beginning_[step]) {
        group->resource = group->manager.create_resource(resource_);
        for (uint32_t object = 0; object < group->slots.size(); ++object)
            context_.bind_external(group->slots[object], group->resource.address(object));
    }
}

void Stepwise::end(size_t step) {
    const Timed timed(times_.memory_ns);
    for (Group *group : ending_[step])
        group->resource = {};
}

Outcome Stepwise::execute(size_t step, Watch &watch) {
    const Program::Step &work = program_.steps_[step];
    if (work.control != kAbsent) {
        Context::Bodies &bodies = context_.bodies_[work.control];
        if (bodies.scratch != context_.addresses_[work.first + work.count - 1])
            bodies = context_.bodies_of(work);
        return context_.execute(work, watch);
    }
    if (work.kernel != nullptr) {
        work.kernel->run({context_.addresses_.data() + work.first, work.count}, program_.threads_);
        return Outcome::kDone;
    }
    onednn::PrimitiveCache::Use primitive;
    {
        const Timed timed(times_.primitives_ns);
        primitive = cache_.obtain(program_.primitives.desc(work.first), program_.threads());
    }
    primitive::Resource scratch;
    if (primitive->scratch_bytes() > 0) {
        const Timed timed(times_.memory_ns);
        scratch = primitive->memory().create_resource(resource_);
        context_.bind_external(scratch_slot_, scratch.address(0));
    }
    context_.primitives_.execute(work.first, primitive->get());
    const Timed timed(times_.memory_ns);
    scratch = {};
    primitive = {};
    return Outcome::kDone;
}

} // namespace tightship

#endif
