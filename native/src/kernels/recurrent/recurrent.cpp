#include "tightship/kernels/recurrent/recurrent.hpp"

#include "cpu/this_cpu.hpp"
#include "recurrent_task.hpp"
#include "relay.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tightship::kernels {

namespace {

constexpr int64_t kGrain = 1 << 15; ///< products of a step that are worth a thread of their own

int64_t gate_count(Cell cell) {
    return cell == Cell::kLstm ? 4 : cell == Cell::kPlain ? 1 : 3;
}

int64_t activation_count(Cell cell) {
    return cell == Cell::kLstm ? 3 : cell == Cell::kPlain ? 1 : 2;
}

/// Returns whether activations are ONNX's defaults, and nothing is clipped.
bool is_usual(const RecurrentRule &rule) {
    const size_t each = static_cast<size_t>(activation_count(rule.cell));
    for (size_t index = 0; index < rule.activations.size(); ++index) {
        const bool is_gate = each > 1 && index % each == 0;
        if (rule.activations[index].function != (is_gate ? Function::kSigmoid : Function::kTanh))
            return false;
    }
    return rule.limit == std::numeric_limits<float>::infinity();
}

constexpr int64_t kLengthMax = int64_t{1} << 31;

Reach floats(Reach elements) {
    const auto item = static_cast<int64_t>(sizeof(float));
    return {elements.low * item, elements.high * item};
}

/// Throws std::invalid_argument unless each gate has an activation, and there is a hidden unit.
void check(const RecurrentShape &shape, const RecurrentRule &rule,
           const std::vector<RecurrentPart> &parts) {
    require(shape.directions == 1 || shape.directions == 2, "a kernel goes in such directions");
    for (const int64_t length : {shape.steps, shape.batch, shape.hidden})
        require(length <= kLengthMax, "a kernel recurs too often");
    counted({shape.batch, shape.hidden}, 1);
    counted({shape.steps, shape.batch, shape.hidden + kUnitAlignment, kUnitAlignment});
    counted({4, shape.hidden, shape.hidden + kUnitAlignment, kUnitAlignment});
    require(rule.activations.size() ==
                static_cast<size_t>(shape.directions * activation_count(rule.cell)),
            "a kernel recurs with other activations than gates");
    for (size_t index = 1; index < parts.size(); ++index)
        require(parts[index - 1] < parts[index], "a kernel has parts out of their order");
}

class Recurrent : public Kernel {
  public:
    Recurrent(const RecurrentShape &shape, const RecurrentRule &rule,
              const std::vector<RecurrentPart> &parts, const RecurrentLayout &layout,
              bool is_narrow)
        : shape_(shape), rule_(rule), parts_(parts), layout_(layout), is_usual_(is_usual(rule)),
          gates_(gate_count(rule.cell)),
          weight_bytes_(is_narrow ? int64_t{2} : static_cast<int64_t>(sizeof(float))),
          room_((shape.hidden + kUnitAlignment - 1) / kUnitAlignment * kUnitAlignment),
          loop_(for_this_cpu(avx512::advance, avx2::advance, portable::advance)) {
        size_t operand = 2;
        for (const RecurrentPart part : parts)
            places_[static_cast<size_t>(part)] = operand++;
    }

    int64_t scratch_bytes(int threads) const override {
        return shape_.directions * (Relay::size_bytes(members(threads)) + state_bytes());
    }

    void run(std::span<char *const> operands, int threads) const override {
        const int64_t team = members(threads);
        const auto rooms = [&](int64_t direction) { return rooms_of(operands, direction, team); };
        for (int64_t direction = 0; direction < shape_.directions; ++direction)
            begin(operands, direction, rooms(direction));
        parallel_for(threads, shape_.directions * team, 1, [&](int64_t first, int64_t last) {
            for (int64_t ticket = first; ticket < last; ++ticket)
                walk(operands, ticket / team, rooms(ticket / team), ticket % team);
        });
        for (int64_t direction = 0; direction < shape_.directions; ++direction)
            finish(operands, direction, rooms(direction));
    }

    size_t written() const override {
        return static_cast<size_t>(
            std::count_if(parts_.begin(), parts_.end(),
                          [](RecurrentPart part) { return part >= RecurrentPart::kSequence; }));
    }

    std::vector<Reach> reach() const override {
        const auto [steps, batch, directions, hidden] = shape_;
        const Reach row{0, hidden}, all_rows{0, directions * gates_ * hidden};
        const Reach state = floats(
            joined(reach_of({directions, batch}, {layout_.state[0], layout_.state[1]}, 1), row, 1));
        const Reach sequence = floats(
            joined(reach_of({steps, directions, batch},
                            {layout_.sequence[0], layout_.sequence[1], layout_.sequence[2]}, 1),
                   row, 1));
        const Reach bias = dense(counted({directions, hidden}), sizeof(float));
        const Reach scales = dense(counted({directions, gates_, room_}), sizeof(float));
        const Reach lengths = dense(batch, sizeof(int32_t)), peephole{0, 3 * bias.high};
        const std::array<Reach, kRecurrentParts> parts{bias,   lengths,  state, state, peephole,
                                                       scales, sequence, state, state};
        std::vector<Reach> all(2 + parts_.size());
        all[0] = floats(
            joined(reach_of({steps, batch}, {layout_.gates[0], layout_.gates[1]}, 1), all_rows, 1));
        all[1] = dense(counted({directions, gates_, hidden, room_}), weight_bytes_);
        for (size_t index = 0; index < parts_.size(); ++index)
            all[2 + index] = parts[static_cast<size_t>(parts_[index])];
        return all;
    }

  private:
    /// Scratch of a direction: states before and after a step, which alternate, and either an
    /// LSTM's cell state or the results between a GRU's phases.
    struct Rooms {
        float *states[2], *others[2];
        Relay relay;
    };

    int64_t phases() const { return rule_.cell == Cell::kGru ? 2 : 1; }
    int64_t state_floats() const { return shape_.batch * room_; }
    int64_t state_bytes() const {
        const int64_t others = rule_.cell == Cell::kLstm ? 1 : phases() == 2 ? 2 : 0;
        return (2 + others) * state_floats() * static_cast<int64_t>(sizeof(float));
    }

    int64_t blocks(int64_t phase) const {
        const int64_t gates = phases() == 1 ? gates_ : 2 - phase;
        const int64_t units = recurrent_block_units(gates);
        return (room_ + units - 1) / units;
    }

    /// Returns the number of threads for each direction.
    int64_t members(int threads) const {
        const int64_t work = shape_.batch * shape_.hidden * room_ * gates_ / kGrain;
        const int64_t most = std::min<int64_t>(threads / shape_.directions, blocks(phases() - 1));
        return std::max<int64_t>(std::min(most, work), 1);
    }

    Rooms rooms_of(std::span<char *const> operands, int64_t direction, int64_t team) const {
        char *relays = operands.back() + shape_.directions * state_bytes();
        auto *states = reinterpret_cast<float *>(operands.back() + direction * state_bytes());
        const int64_t each = state_floats();
        return {{states, states + each},
                {states + 2 * each, states + 3 * each},
                Relay(relays + direction * Relay::size_bytes(team), team)};
    }

    template <class Item>
    Item *part(std::span<char *const> operands, RecurrentPart part, int64_t offset) const {
        const size_t operand = places_[static_cast<size_t>(part)];
        return operand == 0 ? nullptr : reinterpret_cast<Item *>(operands[operand]) + offset;
    }

    void begin(std::span<char *const> operands, int64_t direction, Rooms rooms) const {
        rooms.relay.reset();
        const int64_t offset = direction * layout_.state[0];
        load(part<const float>(operands, RecurrentPart::kState, offset), rooms.states[0]);
        if (rule_.cell == Cell::kLstm)
            load(part<const float>(operands, RecurrentPart::kCellState, offset), rooms.others[0]);
    }

    void finish(std::span<char *const> operands, int64_t direction, const Rooms &rooms) const {
        const int64_t offset = direction * layout_.state[0];
        save(rooms.states[shape_.steps % 2],
             part<float>(operands, RecurrentPart::kLastState, offset));
        save(rooms.others[0], part<float>(operands, RecurrentPart::kLastCellState, offset));
    }

    void load(const float *state, float *rows) const {
        std::memset(rows, 0, static_cast<size_t>(state_floats()) * sizeof(float));
        if (state != nullptr)
            for (int64_t row = 0; row < shape_.batch; ++row)
                std::copy_n(state + row * layout_.state[1], shape_.hidden, rows + row * room_);
    }

    void save(const float *rows, float *state) const {
        if (state != nullptr)
            for (int64_t row = 0; row < shape_.batch; ++row)
                std::copy_n(rows + row * room_, shape_.hidden, state + row * layout_.state[1]);
    }

    void walk(std::span<char *const> operands, int64_t direction, Rooms rooms,
              int64_t member) const {
        const bool backwards = rule_.is_reversed != (direction == 1);
        for (int64_t step = 0; step < shape_.steps; ++step) {
            const int64_t time = backwards ? shape_.steps - 1 - step : step;
            const RecurrentTask task = task_of(operands, direction, rooms, step, time);
            for (int64_t phase = 0; phase < phases(); ++phase) {
                const int64_t count = blocks(phase);
                rooms.relay.run(member, step * phases() + phase, [&](int64_t part, int64_t parts) {
                    loop_(task, phase, count * part / parts, count * (part + 1) / parts);
                });
            }
        }
    }

    RecurrentTask task_of(std::span<char *const> operands, int64_t direction, const Rooms &rooms,
                          int64_t step, int64_t time) const {
        const int64_t hidden = shape_.hidden;
        RecurrentTask task{};
        task.cell = rule_.cell;
        task.is_usual = is_usual_;
        task.is_coupled = rule_.is_coupled;
        task.limit = rule_.limit;
        task.activations = rule_.activations.data() + direction * activation_count(rule_.cell);
        task.batch = shape_.batch;
        task.hidden = hidden;
        task.room = room_;
        task.gates = reinterpret_cast<const float *>(operands[0]) + time * layout_.gates[0] +
                     direction * gates_ * hidden;
        task.gates_row = layout_.gates[1];
        task.weights = operands[1] + direction * gates_ * hidden * room_ * weight_bytes_;
        task.is_narrow = weight_bytes_ == 2;
        task.scales =
            part<const float>(operands, RecurrentPart::kScales, direction * gates_ * room_);
        task.reset_bias =
            part<const float>(operands, RecurrentPart::kResetBias, direction * hidden);
        task.peephole =
            part<const float>(operands, RecurrentPart::kPeephole, direction * 3 * hidden);
        task.lengths = part<const int32_t>(operands, RecurrentPart::kLengths, 0);
        task.time = time;
        task.state = rooms.states[step % 2];
        task.next_state = rooms.states[(step + 1) % 2];
        task.cell_state = task.update = rooms.others[0];
        task.reset_state = rooms.others[1];
        task.sequence = part<float>(operands, RecurrentPart::kSequence,
                                    time * layout_.sequence[0] + direction * layout_.sequence[1]);
        task.sequence_row = layout_.sequence[2];
        return task;
    }

    RecurrentShape shape_;
    RecurrentRule rule_;
    std::vector<RecurrentPart> parts_;
    RecurrentLayout layout_;
    std::array<size_t, kRecurrentParts> places_{}; ///< 0: not there
    bool is_usual_;
    int64_t gates_;
    int64_t weight_bytes_;
    int64_t room_; ///< of a row's hidden units in scratch
    RecurrentLoop loop_;
};

} // namespace

std::shared_ptr<const Kernel> recurrent(const RecurrentShape &shape, const RecurrentRule &rule,
                                        const std::vector<RecurrentPart> &parts,
                                        const RecurrentLayout &layout, bool is_narrow) {
    check(shape, rule, parts);
    auto kernel = std::make_shared<Recurrent>(shape, rule, parts, layout, is_narrow);
    kernel->reach();
    return kernel;
}

} // namespace tightship::kernels
