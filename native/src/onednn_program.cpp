#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/program.hpp"

#include <cassert>
#include <cstring>
#include <string>
#include <unordered_map>

namespace tightship::onednn {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(20);

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

Program::~Program() {
    destroy_all(weights_);
}

uint32_t Program::operand(const MemoryDesc &desc, Place place) {
    const size_t recent = operands_.size() > 64 ? operands_.size() - 64 : 0;
    for (size_t index = operands_.size(); index-- > recent;)
        if (operands_[index].place == place && operands_[index].desc == desc)
            return static_cast<uint32_t>(index);
    operands_.push_back({desc, place});
    return static_cast<uint32_t>(operands_.size() - 1);
}

void Program::add_primitive(std::shared_ptr<const PrimitiveDesc> desc,
                            std::span<const std::pair<int, uint32_t>> arguments) {
    assert(primitives_.empty());
    steps_.push_back({static_cast<int32_t>(descs_.size()), static_cast<uint32_t>(arguments_.size()),
                      static_cast<uint32_t>(arguments.size())});
    arguments_.insert(arguments_.end(), arguments.begin(), arguments.end());
    descs_.push_back(std::move(desc));
}

void Program::add_copy(Place from, Place to, int64_t size_bytes) {
    steps_.push_back({-1, 0, 0, from, to, size_bytes});
}

void Program::compile(int threads) {
    threads_ = threads;
    const ThreadScope scope(threads);
    std::unordered_map<std::string, int32_t> compiled;
    std::vector<int32_t> primitive_of;
    for (auto &desc : descs_) {
        const auto [entry, is_new] =
            compiled.try_emplace(desc->signature(), static_cast<int32_t>(primitives_.size()));
        if (is_new)
            primitives_.emplace_back(*desc);
        primitive_of.push_back(entry->second);
        desc.reset();
    }
    descs_.clear();
    for (Step &step : steps_)
        if (step.primitive >= 0)
            step.primitive = primitive_of[static_cast<size_t>(step.primitive)];
}

void Program::bind_weights(void *base) {
    weights_base_ = static_cast<char *>(base);
    destroy_all(weights_);
    weights_.assign(operands_.size(), nullptr);
    for (size_t index = 0; index < operands_.size(); ++index)
        if (operands_[index].place.space == kWeights)
            weights_[index] = create_memory(operands_[index].desc,
                                            weights_base_ + operands_[index].place.offset_bytes);
}

Context::Context(const Program &program, void *arena)
    : program_(program), arena_(static_cast<char *>(arena)) {
    Library &library = Library::get();
    Library::check(library.stream_create(&stream_, library.engine, dnnl_stream_default_flags),
                   "create a stream");
    memories_.assign(program.operands_.size(), nullptr);
    for (size_t index = 0; index < memories_.size(); ++index) {
        const auto &[desc, place] = program.operands_[index];
        if (place.space == kArena)
            memories_[index] = create_memory(desc, arena_ + place.offset_bytes);
        else if (place.space >= kExternal)
            memories_[index] = create_memory(desc, nullptr);
    }
    for (const auto &[argument, operand] : program.arguments_)
        arguments_.push_back(
            {argument, memories_[operand] ? memories_[operand] : program.weights_[operand]});
}

Context::~Context() {
    destroy_all(memories_);
    if (stream_ != nullptr)
        Library::get().stream_destroy(stream_);
}

void Context::bind_external(uint32_t slot, void *data) {
    if (slot >= externals_.size())
        externals_.resize(slot + 1, nullptr);
    externals_[slot] = static_cast<char *>(data);
    for (size_t index = 0; index < memories_.size(); ++index) {
        const Place place = program_.operands_[index].place;
        if (place.space == kExternal + slot)
            Library::check(Library::get().memory_set_data_handle(
                               memories_[index], externals_[slot] + place.offset_bytes),
                           "bind an input or output");
    }
}

Outcome Context::run(size_t first, size_t last, const StopFlag &stop,
                     std::optional<std::chrono::steady_clock::time_point> deadline,
                     const std::function<void()> &poll) {
    assert(last <= program_.steps_.size());
    const ThreadScope scope(program_.threads_);
    auto polled = std::chrono::steady_clock::now();
    for (size_t index = first; index < last; ++index) {
        if (stop.load(std::memory_order_relaxed))
            return Outcome::kStopped;
        const auto now = std::chrono::steady_clock::now();
        if (deadline && now >= *deadline)
            return Outcome::kDeadline;
        if (now - polled >= kPollInterval) {
            poll();
            polled = now;
        }
        execute(program_.steps_[index]);
    }
    return Outcome::kDone;
}

void Context::execute(const Program::Step &step) {
    if (step.primitive < 0) {
        std::memmove(address(step.to), address(step.from), static_cast<size_t>(step.size_bytes));
        return;
    }
    const auto status = Library::get().primitive_execute(
        program_.primitives_[static_cast<size_t>(step.primitive)].get(), stream_,
        static_cast<int>(step.count), arguments_.data() + step.first);
    Library::check(status, "run a primitive");
}

char *Context::address(Place place) const {
    char *base = place.space == kArena     ? arena_
                 : place.space == kWeights ? program_.weights_base_
                                           : externals_[place.space - kExternal];
    return base + place.offset_bytes;
}

} // namespace tightship::onednn

#endif
