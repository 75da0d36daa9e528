#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive_steps.hpp"

#include <cassert>
#include <string>
#include <unordered_map>

namespace tightship::onednn {

namespace {

dnnl_memory_t create_memory(const MemoryDesc &desc, void *data) {
    Library &library = Library::get();
    dnnl_memory_t memory = nullptr;
    Library::check(library.memory_create(&memory, desc.get(), library.engine, data),
                   "bind an operand");
    return memory;
}

void destroy_all(const std::vector<dnnl_memory_t> &memories) {
    for (const dnnl_memory_t memory : memories)
        if (memory != nullptr)
            Library::get().memory_destroy(memory);
}

} // namespace

PrimitiveSteps::~PrimitiveSteps() {
    destroy_all(weights_);
}

uint32_t PrimitiveSteps::operand(const MemoryDesc &desc, Place place) {
    const size_t recent = operands_.size() > 64 ? operands_.size() - 64 : 0;
    for (size_t index = operands_.size(); index-- > recent;)
        if (operands_[index].place == place && operands_[index].desc == desc)
            return static_cast<uint32_t>(index);
    operands_.push_back({desc, place});
    return static_cast<uint32_t>(operands_.size() - 1);
}

void PrimitiveSteps::add(std::shared_ptr<const PrimitiveDesc> desc,
                         std::span<const std::pair<int, uint32_t>> arguments) {
    assert(primitives_.empty());
    steps_.push_back({static_cast<uint32_t>(descs_.size()),
                      static_cast<uint32_t>(arguments_.size()),
                      static_cast<uint32_t>(arguments.size()), desc->meets()});
    arguments_.insert(arguments_.end(), arguments.begin(), arguments.end());
    descs_.push_back(std::move(desc));
}

void PrimitiveSteps::compile(int threads) {
    PrimitiveCache &cache = PrimitiveCache::of_process();
    std::unordered_map<std::string, uint32_t> compiled;
    std::unordered_map<const PrimitiveDesc *, uint32_t> seen;
    std::vector<uint32_t> primitive_of;
    for (auto &desc : descs_) {
        const auto [known, is_first] = seen.try_emplace(desc.get(), 0);
        if (is_first) {
            const auto [entry, is_new] =
                compiled.try_emplace(desc->signature(), static_cast<uint32_t>(primitives_.size()));
            if (is_new)
                primitives_.push_back(cache.obtain(*desc, threads));
            known->second = entry->second;
        }
        primitive_of.push_back(known->second);
        desc.reset();
    }
    descs_.clear();
    for (Step &step : steps_)
        step.primitive = primitive_of[step.primitive];
}

void PrimitiveSteps::bind_weights(char *base) {
    destroy_all(weights_);
    weights_.assign(operands_.size(), nullptr);
    for (size_t index = 0; index < operands_.size(); ++index)
        if (operands_[index].place.space == kWeights)
            weights_[index] =
                create_memory(operands_[index].desc, base + operands_[index].place.offset_bytes);
}

BoundPrimitives::BoundPrimitives(const PrimitiveSteps &steps, char *arena)
    : BoundPrimitives(steps) {
    if (steps.empty())
        return;
    Library &library = Library::get();
    Library::check(library.stream_create(&stream_, library.engine, dnnl_stream_default_flags),
                   "create a stream");
    memories_.assign(steps.operands_.size(), nullptr);
    for (size_t index = 0; index < memories_.size(); ++index) {
        const auto &[desc, place] = steps.operands_[index];
        if (place.space == kArena)
            memories_[index] = create_memory(desc, arena + place.offset_bytes);
        else if (place.space >= kExternal)
            memories_[index] = create_memory(desc, nullptr);
        externals_.add(place);
    }
    externals_.sort();
    for (const auto &[argument, operand] : steps.arguments_)
        arguments_.push_back(
            {argument, memories_[operand] ? memories_[operand] : steps.weights_[operand]});
}

BoundPrimitives::~BoundPrimitives() {
    destroy_all(memories_);
    if (stream_ != nullptr)
        Library::get().stream_destroy(stream_);
}

void BoundPrimitives::bind_external(uint32_t slot, char *data) {
    for (const auto &[space, index] : externals_.of(slot)) {
        char *const bytes = data + steps_.operands_[index].place.offset_bytes;
        Library::check(Library::get().memory_set_data_handle(memories_[index], bytes),
                       "bind an input or output");
    }
}

void BoundPrimitives::execute(uint32_t index) const {
    execute(index, steps_.primitives_[steps_.steps_[index].primitive]->get());
}

void BoundPrimitives::execute(uint32_t index, const_dnnl_primitive_t primitive) const {
    const PrimitiveSteps::Step &step = steps_.steps_[index];
    if (step.meets)
        Library::get().meet(true);
    const auto status = Library::get().primitive_execute(
        primitive, stream_, static_cast<int>(step.count), arguments_.data() + step.first);
    if (step.meets)
        Library::get().meet(false);
    Library::check(status, "run a primitive");
}

} // namespace tightship::onednn

#endif
