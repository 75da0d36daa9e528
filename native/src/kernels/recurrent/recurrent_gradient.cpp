#include "tightship/kernels/recurrent/recurrent_gradient.hpp"

#include "cpu/this_cpu.hpp"
#include "recurrent_gradient_task.hpp"
#include "relay.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <cstring>

namespace tightship::kernels {

namespace {

constexpr int64_t kGrain = 1 << 15; ///< products of a step that are worth a thread of their own
constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

int64_t gate_count(Cell cell) {
    return cell == Cell::kLstm ? 4 : cell == Cell::kPlain ? 1 : 3;
}

int64_t rounded(int64_t units) {
    return (units + kUnitAlignment - 1) / kUnitAlignment * kUnitAlignment;
}

class RecurrentGradient : public Kernel {
  public:
    RecurrentGradient(const RecurrentGradientSpec &spec, const std::vector<BackPart> &parts)
        : spec_(spec), parts_(parts), gates_(gate_count(spec.cell)), room_(rounded(spec.hidden)),
          blocks_((room_ + kBlockColumns - 1) / kBlockColumns),
          go_back_(for_this_cpu(avx512::go_back, avx2::go_back, portable::go_back)),
          replay_(for_this_cpu(avx512::replay, avx2::replay, portable::replay)) {
        for (size_t operand = 0; operand < parts.size(); ++operand)
            places_[static_cast<size_t>(parts[operand])] = operand + 1;
    }

    int64_t scratch_bytes(int threads) const override {
        return Relay::size_bytes(members(threads)) +
               (panel_floats() + 2 * row_floats() + cell_floats()) * kFloat;
    }

    void run(std::span<char *const> operands, int threads) const override {
        const int64_t team = members(threads);
        Relay relay(operands.back(), team);
        const Rooms rooms =
            rooms_of(reinterpret_cast<float *>(operands.back() + Relay::size_bytes(team)));
        relay.reset();
        begin(operands, rooms, threads);
        const int64_t rounds =
            spec_.steps + (part<float>(operands, BackPart::kFirstGradient) == nullptr ? 0 : 1);
        parallel_for(threads, team, 1, [&](int64_t first, int64_t last) {
            for (int64_t member = first; member < last; ++member)
                for (int64_t round = 0; round < rounds; ++round) {
                    const RecurrentGradientTask task = task_of(operands, rooms, round);
                    Relay(operands.back(), team)
                        .run(member, round, [&](int64_t index, int64_t count) {
                            go_back_(task, blocks_ * index / count, blocks_ * (index + 1) / count);
                        });
                }
        });
        auto *cell = part<float>(operands, BackPart::kFirstCellGradient);
        for (int64_t row = 0; cell != nullptr && row < spec_.batch; ++row)
            std::copy_n(rooms.cell_gradient + row * room_, spec_.hidden, cell + row * spec_.hidden);
    }

    size_t written() const override {
        return static_cast<size_t>(std::count_if(parts_.begin(), parts_.end(), [](BackPart part) {
            return part >= BackPart::kInputGates;
        }));
    }

    std::vector<Reach> reach() const override {
        const auto [cell, steps, batch, hidden, reversed, cut] = spec_;
        const Reach row = dense(counted({batch, hidden}), kFloat);
        const Reach states = dense(counted({steps, batch, hidden}), kFloat);
        const Reach all = dense(counted({steps, batch, gates_, hidden}), kFloat);
        const std::array<Reach, kBackParts> reaches{
            all,
            all,
            dense(counted({gates_, hidden, hidden}), kFloat),
            dense(counted({2, gates_, hidden}), kFloat),
            states,
            row,
            states,
            row,
            row,
            all,
            all,
            row,
            row};
        std::vector<Reach> found;
        for (const BackPart part : parts_)
            found.push_back(reaches[static_cast<size_t>(part)]);
        return found;
    }

  private:
    struct Rooms {
        float *panels, *cell_gradient, *carried, *cells;
    };

    bool is_lstm() const { return spec_.cell == Cell::kLstm; }
    int64_t depth() const { return gates_ * spec_.hidden; }
    int64_t panel_floats() const { return blocks_ * depth() * kBlockColumns; }
    int64_t row_floats() const { return spec_.batch * room_; }
    int64_t cell_floats() const { return is_lstm() ? (spec_.steps + 1) * row_floats() : 0; }

    Rooms rooms_of(float *room) const {
        float *rows = room + panel_floats();
        return {room, rows, rows + row_floats(), rows + 2 * row_floats()};
    }

    int64_t members(int threads) const {
        const int64_t work = row_floats() * depth() / kGrain;
        return std::max<int64_t>(std::min({static_cast<int64_t>(threads), blocks_, work}), 1);
    }

    template <class Item> Item *part(std::span<char *const> operands, BackPart part) const {
        const size_t place = places_[static_cast<size_t>(part)];
        return place == 0 ? nullptr : reinterpret_cast<Item *>(operands[place - 1]);
    }

    void begin(std::span<char *const> operands, const Rooms &rooms, int threads) const {
        const auto *weights = part<const float>(operands, BackPart::kWeights);
        parallel_for(threads, blocks_, 1, [&](int64_t first, int64_t last) {
            for (int64_t block = first; block < last; ++block)
                pack(weights + block * kBlockColumns,
                     std::min(spec_.hidden - block * kBlockColumns, kBlockColumns),
                     rooms.panels + block * depth() * kBlockColumns);
        });
        load(part<const float>(operands, BackPart::kLastCellGradient), rooms.cell_gradient);
        std::memset(rooms.carried, 0, static_cast<size_t>(row_floats() * kFloat));
        if (!is_lstm())
            return;
        load(part<const float>(operands, BackPart::kFirstCell), rooms.cells);
        const RecurrentReplayTask task{
            spec_.steps,
            spec_.batch,
            spec_.hidden,
            room_,
            spec_.is_reversed,
            part<const float>(operands, BackPart::kGates),
            part<const float>(operands, BackPart::kShares),
            part<const float>(operands, BackPart::kBias),
            part<float>(operands, BackPart::kInputGates),
            rooms.cells,
        };
        parallel_for(threads, spec_.batch, 1,
                     [&](int64_t first, int64_t last) { replay_(task, first, last); });
    }

    /// Copies columns of the weights side by side, as many as a block has.
    void pack(const float *weights, int64_t columns, float *panel) const {
        for (int64_t row = 0; row < depth(); ++row, panel += kBlockColumns) {
            std::copy_n(weights + row * spec_.hidden, columns, panel);
            std::fill(panel + columns, panel + kBlockColumns, 0.0F);
        }
    }

    void load(const float *rows, float *target) const {
        std::memset(target, 0, static_cast<size_t>(row_floats() * kFloat));
        for (int64_t row = 0; rows != nullptr && row < spec_.batch; ++row)
            std::copy_n(rows + row * spec_.hidden, spec_.hidden, target + row * room_);
    }

    /// Returns the task of the step before `round` others in backward order, or of the gradient of
    /// the first state.
    RecurrentGradientTask task_of(std::span<char *const> operands, const Rooms &rooms,
                                  int64_t round) const {
        const int64_t step = spec_.steps - 1 - round, rows = spec_.batch * spec_.hidden;
        const auto time = [&](int64_t of) { return spec_.is_reversed ? spec_.steps - 1 - of : of; };
        RecurrentGradientTask task{};
        task.cell = spec_.cell;
        task.is_cut = spec_.is_cut;
        task.gate_count = gates_;
        task.batch = spec_.batch;
        task.hidden = spec_.hidden;
        task.room = room_;
        task.panels = rooms.panels;
        task.bias = part<const float>(operands, BackPart::kBias);
        task.cell_gradient = rooms.cell_gradient;
        task.carried = rooms.carried;
        auto *input_gates = part<float>(operands, BackPart::kInputGates);
        auto *state_gates = part<float>(operands, BackPart::kStateGates);
        const auto at = [&](auto *all, int64_t each, int64_t index) {
            return all == nullptr ? nullptr : all + time(index) * each;
        };
        if (round > 0)
            task.later =
                at(state_gates == nullptr ? input_gates : state_gates, gates_ * rows, step + 1);
        if (step < 0) {
            task.first_gradient = part<float>(operands, BackPart::kFirstGradient);
            return task;
        }
        task.last_gradient = part<const float>(operands, BackPart::kLastGradient);
        task.gradient = at(part<const float>(operands, BackPart::kGradient), rows, step);
        task.input_gates = at(input_gates, gates_ * rows, step);
        task.state_gates = at(state_gates, gates_ * rows, step);
        task.gates = is_lstm()
                         ? task.input_gates
                         : at(part<const float>(operands, BackPart::kGates), gates_ * rows, step);
        task.states = at(part<const float>(operands, BackPart::kStates), rows, step);
        task.shares = at(part<const float>(operands, BackPart::kShares), gates_ * rows, step);
        task.cells_before = rooms.cells + step * row_floats();
        task.cells = task.cells_before + row_floats();
        return task;
    }

    RecurrentGradientSpec spec_;
    std::vector<BackPart> parts_;
    std::array<size_t, kBackParts> places_{}; ///< behind the operand; 0: not there
    int64_t gates_, room_, blocks_;
    RecurrentGradientLoop go_back_;
    RecurrentReplayLoop replay_;
};

/// Packing of weights into the blocks that `recurrent` streams.
class RecurrentWeights : public Kernel {
  public:
    RecurrentWeights(Cell cell, int64_t directions, int64_t hidden)
        : cell_(cell), directions_(directions), hidden_(hidden), gates_(gate_count(cell)),
          room_(rounded(hidden)) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto *weights = reinterpret_cast<const float *>(operands[0]);
        auto *packed = reinterpret_cast<float *>(operands[1]);
        const int64_t split = cell_ == Cell::kGru ? 2 : gates_;
        for (int64_t direction = 0; direction < directions_; ++direction) {
            const float *source = weights + direction * gates_ * hidden_ * hidden_;
            float *target = packed + direction * gates_ * hidden_ * room_;
            panels(source, 0, split, target, threads);
            panels(source, split, gates_, target + split * hidden_ * room_, threads);
        }
    }

    std::vector<Reach> reach() const override {
        return {dense(counted({directions_, gates_, hidden_, hidden_}), kFloat),
                dense(counted({directions_, gates_, hidden_, room_}), kFloat)};
    }

  private:
    /// Packs gates from `first` to `last`, block after block.
    void panels(const float *source, int64_t first, int64_t last, float *target,
                int threads) const {
        if (first == last)
            return;
        const int64_t gates = last - first, units = recurrent_block_units(gates);
        parallel_for(threads, (room_ + units - 1) / units, 1, [&](int64_t begin, int64_t end) {
            for (int64_t block = begin; block < end; ++block) {
                const int64_t at = block * units, wide = std::min(units, room_ - at);
                float *panel = target + at * gates * hidden_;
                for (int64_t column = 0; column < gates * wide; ++column) {
                    const int64_t gate = first + column / wide, unit = at + column % wide;
                    const float *row = source + (gate * hidden_ + unit) * hidden_;
                    for (int64_t index = 0; index < hidden_; ++index)
                        panel[index * gates * wide + column] = unit < hidden_ ? row[index] : 0.0F;
                }
            }
        });
    }

    Cell cell_;
    int64_t directions_, hidden_, gates_, room_;
};

constexpr int64_t kLengthMax = int64_t{1} << 31;

} // namespace

std::shared_ptr<const Kernel> recurrent_gradient(const RecurrentGradientSpec &spec,
                                                 const std::vector<BackPart> &parts) {
    for (const int64_t length : {spec.steps, spec.batch, spec.hidden})
        require(0 < length && length <= kLengthMax, "a kernel recurs too often");
    require(spec.cell != Cell::kGru, "a kernel goes back through cells that it has not");
    counted({spec.steps + 1, spec.batch, 4 * spec.hidden + kBlockColumns, kItemMax});
    counted({4, spec.hidden, spec.hidden + kBlockColumns, kItemMax});
    for (size_t index = 1; index < parts.size(); ++index)
        require(parts[index - 1] < parts[index], "a kernel has parts out of their order");
    const auto has = [&](BackPart part) {
        return std::find(parts.begin(), parts.end(), part) != parts.end();
    };
    const bool is_plain = spec.cell == Cell::kPlain, is_gru = spec.cell == Cell::kLinearGru;
    require(has(BackPart::kWeights) && has(BackPart::kInputGates) &&
                has(BackPart::kGates) == !is_plain && has(BackPart::kShares) == !is_plain &&
                has(BackPart::kStateGates) == is_gru &&
                (spec.cell == Cell::kLstm || has(BackPart::kStates)),
            "a kernel goes back through a cell without what it needs");
    auto kernel = std::make_shared<RecurrentGradient>(spec, parts);
    kernel->reach();
    return kernel;
}

std::shared_ptr<const Kernel> recurrent_weights(Cell cell, int64_t directions, int64_t hidden) {
    require(hidden <= kLengthMax && (directions == 1 || directions == 2),
            "a kernel packs weights of no layer");
    counted({directions, 4, hidden, hidden + kUnitAlignment, kItemMax}, 1);
    return std::make_shared<RecurrentWeights>(cell, directions, hidden);
}

} // namespace tightship::kernels
