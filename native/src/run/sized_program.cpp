#include "tightship/run/sized_program.hpp"

#include <algorithm>
#include <cstring>

namespace tightship {

using kernels::Tensor;
using kernels::TensorRoom;

void SizedProgram::add(std::shared_ptr<const kernels::SizedOperator> computes, Values reads,
                       Values writes, Values dying) {
    for (const Values *values : {&reads, &writes, &dying})
        for (const uint32_t value : *values)
            if (value != kNoValue)
                value_count_ = std::max<size_t>(value_count_, value + size_t{1});
    steps_.push_back({std::move(computes), std::move(reads), std::move(writes), std::move(dying)});
}

void SizedProgram::add_planned(size_t first, size_t last) {
    steps_.push_back({.first = first, .last = last});
}

SizedContext::SizedContext(const SizedProgram &program, Context *planned)
    : program_(program), planned_(planned), values_(program.value_count()),
      is_planned_(program.value_count()) {}

void SizedContext::bind(uint32_t value, Tensor tensor) {
    values_.at(value) = std::move(tensor);
    is_planned_[value] = true;
}

void SizedContext::drop(uint32_t value) {
    if (value != kNoValue && !is_planned_[value])
        values_[value] = {};
}

void SizedContext::release(size_t step) {
    for (const uint32_t value : program_.steps_.at(step).dying)
        drop(value);
}

void SizedContext::clear() {
    for (size_t value = 0; value < values_.size(); ++value)
        drop(static_cast<uint32_t>(value));
}

SizedProgress SizedContext::run(size_t first, size_t last, bool runs_planned, Watch watch,
                                const TensorRoom &room, int threads) {
    last = std::min(last, program_.step_count());
    for (size_t index = first; index < last; ++index) {
        const SizedProgram::Step &step = program_.steps_[index];
        if (step.first < step.last) {
            if (!runs_planned || planned_ == nullptr)
                return {index, Outcome::kDone};
            const Outcome outcome = planned_->run(step.first, step.last, watch);
            if (outcome != Outcome::kDone)
                return {index, outcome};
            continue;
        }
        if (const Outcome outcome = watch.look(); outcome != Outcome::kDone)
            return {index, outcome};
        if (step.computes == nullptr || !compute(step, room, threads))
            return {index, Outcome::kDone};
        for (const uint32_t value : step.dying)
            drop(value);
    }
    return {last, Outcome::kDone};
}

bool SizedContext::run_all(const TensorRoom &room, int threads) {
    for (const SizedProgram::Step &step : program_.steps_) {
        if (step.computes == nullptr || !compute(step, room, threads))
            return false;
        for (const uint32_t value : step.dying)
            drop(value);
    }
    return true;
}

bool SizedContext::compute(const SizedProgram::Step &step, const TensorRoom &room, int threads) {
    operands_.clear();
    for (const uint32_t value : step.reads) {
        Tensor *const read = value == kNoValue ? nullptr : &values_[value];
        if (read != nullptr && read->data == nullptr)
            return false; // its caller keeps it as an object of another kind
        if (read != nullptr)
            read->is_spare = is_spare(step, value);
        operands_.push_back(read);
    }
    results_.assign(step.writes.size(), {});
    bool is_done = false;
    try {
        is_done = step.computes->run(operands_, results_, room, threads) && keep(step);
    } catch (const std::exception &) {
        is_done = false; // the other kernel says what is wrong with the operands, or runs them
    }
    results_.clear();
    return is_done;
}

/// Returns whether the bytes of an operand may be overwritten by results: no later step reads them,
/// no other value has them, and the step cannot fail behind its operator.
bool SizedContext::is_spare(const SizedProgram::Step &step, uint32_t value) const {
    const Tensor &read = values_[value];
    const auto is_planned = [this](uint32_t each) { return each != kNoValue && is_planned_[each]; };
    return read.is_own && read.held.use_count() == 1 && !is_planned_[value] &&
           std::ranges::count(step.dying, value) > 0 &&
           std::ranges::count(step.reads, value) == 1 &&
           std::ranges::none_of(step.writes, is_planned);
}

/// Takes over the results; false if one is not what the plan has room for.
bool SizedContext::keep(const SizedProgram::Step &step) {
    for (size_t index = 0; index < step.writes.size(); ++index) {
        const uint32_t value = step.writes[index];
        if (value == kNoValue || !is_planned_[value])
            continue;
        const Tensor &place = values_[value], &result = results_[index];
        if (result.type != place.type || !std::ranges::equal(result.shape(), place.shape()))
            return false;
    }
    for (size_t index = 0; index < step.writes.size(); ++index) {
        const uint32_t value = step.writes[index];
        if (value == kNoValue)
            continue;
        if (is_planned_[value])
            std::memcpy(values_[value].data, results_[index].data,
                        static_cast<size_t>(results_[index].size_bytes()));
        else
            values_[value] = std::move(results_[index]);
    }
    return true;
}

} // namespace tightship
