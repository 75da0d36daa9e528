#include "tightship/run/control.hpp"

#include "tightship/run/program.hpp"

#include <algorithm>
#include <cstring>

namespace tightship {

namespace {

/// Time of an iteration during which a run need not check whether it must end.
constexpr auto kBrief = std::chrono::milliseconds(1);

template <class Value> Value read(const char *address) {
    Value value;
    std::memcpy(&value, address, sizeof value);
    return value;
}

bool is_true(const char *address) {
    return *address != 0;
}

void copy_rows(char *to, int64_t to_stride, const char *from, int64_t from_stride,
               const Slices &slices) {
    for (int64_t row = 0; row < slices.rows; ++row)
        std::memcpy(to + row * to_stride, from + row * from_stride,
                    static_cast<size_t>(slices.row_bytes));
}

void copy(char *to, const char *from, int64_t size_bytes) {
    if (size_bytes > 0) // addresses of no bytes may be null
        std::memcpy(to, from, static_cast<size_t>(size_bytes));
}

/// Points slots at operands, unless the same ones were there in the last run.
void bind(Context &body, const ControlBody &described, std::span<char *const> operands,
          std::vector<char *> &bound) {
    for (size_t index = 0; index < bound.size(); ++index) {
        const auto [slot, operand] = described.bound[index];
        if (bound[index] != operands[operand]) {
            body.bind_external(slot, operands[operand]);
            bound[index] = operands[operand];
        }
    }
}

int64_t trips_of(const Control &control, std::span<char *const> operands) {
    if (control.count == kAbsent)
        return control.most;
    return std::min(control.most, read<int64_t>(operands[control.count]));
}

} // namespace

Outcome Context::choose(const Control &control, Bodies &bodies, std::span<char *const> operands,
                        Watch &watch) {
    const size_t taken = is_true(operands[control.condition]) ? 1 : 0;
    Context &body = *bodies.contexts[taken];
    bind(body, control.bodies[taken], operands, bodies.bound[taken]);
    return body.run_steps(0, body.program_.step_count(), watch, true);
}

Outcome Context::repeat(const Control &control, Bodies &bodies, std::span<char *const> operands,
                        Watch &watch) {
    Context &body = *bodies.contexts.front();
    const size_t steps = body.program_.step_count();
    char *const scratch = operands.back();
    char *const number = scratch + control.numbers, *const goes_on = number + sizeof(int64_t),
                *const next = goes_on + 1;
    bind(body, control.bodies.front(), operands, bodies.bound.front());
    for (const auto [slot, address] : {std::pair(control.number_slot, number),
                                       {control.goes_on_slot, goes_on},
                                       {control.next_slot, next}})
        if (slot != kAbsent)
            body.bind_external(slot, address);
    for (const auto *parts : {&control.read, &control.written})
        for (const Slices &slices : *parts)
            if (slices.rows > 1)
                body.bind_external(slices.slot, scratch + slices.dense);

    const int64_t trips = trips_of(control, operands);
    const bool is_counted = !control.obeys && trips != kUncounted;
    const auto ends_in_result = [&](int64_t iteration) {
        return (is_counted ? trips - 1 - iteration : iteration) % 2 == 0;
    };
    const auto result_of = [&](const CarriedState &state) {
        return state.result == kAbsent
                   ? scratch + state.spare + (state.size_bytes + kLine - 1) / kLine * kLine
                   : operands[state.result];
    };
    const auto written_by = [&](const CarriedState &state, int64_t iteration) {
        return ends_in_result(iteration) ? result_of(state) : scratch + state.spare;
    };
    *goes_on = control.condition == kAbsent || is_true(operands[control.condition]);
    for (const CarriedState &state : control.states)
        if (state.spare < 0) {
            copy(operands[state.result], operands[state.initial], state.size_bytes);
            body.bind_external(state.input, operands[state.result]);
            body.bind_external(state.output, operands[state.result]);
        }
    int64_t done = 0;
    for (; *goes_on && done < trips; ++done) {
        std::memcpy(number, &done, sizeof done);
        for (const CarriedState &state : control.states) {
            if (state.spare < 0)
                continue;
            body.bind_external(state.input,
                               done == 0 ? operands[state.initial] : written_by(state, done - 1));
            body.bind_external(state.output, written_by(state, done));
        }
        for (const Slices &slices : control.read) {
            char *const part = operands[slices.operand] + slices.first + done * slices.step;
            if (slices.rows > 1)
                copy_rows(scratch + slices.dense, slices.row_bytes, part, slices.stride, slices);
            else
                body.bind_external(slices.slot, part);
        }
        for (const Slices &slices : control.written)
            if (slices.rows <= 1)
                body.bind_external(slices.slot,
                                   operands[slices.operand] + slices.first + done * slices.step);
        const auto began = watch.looked();
        Outcome outcome = watch.look(); // a body may have no steps
        if (outcome == Outcome::kDone)
            outcome = body.run_steps(0, steps, watch, done == 0 || watch.looked() - began > kBrief);
        if (outcome != Outcome::kDone)
            return outcome;
        for (const Slices &slices : control.written)
            if (slices.rows > 1)
                copy_rows(operands[slices.operand] + slices.first + done * slices.step,
                          slices.stride, scratch + slices.dense, slices.row_bytes, slices);
        if (control.obeys)
            *goes_on = is_true(next);
    }
    for (const CarriedState &state : control.states) {
        if (state.spare < 0)
            continue;
        char *const last = done == 0 ? operands[state.initial] : written_by(state, done - 1);
        if (state.result != kAbsent && last != operands[state.result])
            copy(operands[state.result], last, state.size_bytes);
    }
    for (const KeptValue &value : control.kept)
        copy(operands[value.result], operands[value.source], value.size_bytes);
    return Outcome::kDone;
}

} // namespace tightship
