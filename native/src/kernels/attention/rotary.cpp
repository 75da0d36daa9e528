#include "tightship/kernels/attention/rotary.hpp"

#include "tightship/kernels/spans.hpp"

#include <algorithm>
#include <cstring>

namespace tightship::kernels {

namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kPairs = 16; ///< rotated at once if they are adjacent

enum Operand : size_t { kSource, kCosine, kSine, kTarget };
using Places = std::array<char *, 4>;
using Distances = std::array<int64_t, 4>;

struct Floats {
    float at[kPairs];

    explicit Floats(const char *from) { std::memcpy(at, from, sizeof at); }
};

/// Rotates kPairs pairs whose elements lie side by side with those of the next pair, in all
/// operands. Reads all before it writes, because the target may be the source.
void turn_halves(const Places &first, const Distances &partners) {
    const Floats a(first[kSource]), b(first[kSource] + partners[kSource]);
    const Floats cosine_a(first[kCosine]), cosine_b(first[kCosine] + partners[kCosine]);
    const Floats sine_a(first[kSine]), sine_b(first[kSine] + partners[kSine]);
    float turned_a[kPairs], turned_b[kPairs];
    for (int64_t pair = 0; pair < kPairs; ++pair) {
        turned_a[pair] = a.at[pair] * cosine_a.at[pair] - b.at[pair] * sine_a.at[pair];
        turned_b[pair] = b.at[pair] * cosine_b.at[pair] + a.at[pair] * sine_b.at[pair];
    }
    std::memcpy(first[kTarget], turned_a, sizeof turned_a);
    std::memcpy(first[kTarget] + partners[kTarget], turned_b, sizeof turned_b);
}

/// Rotates kPairs pairs of neighbours that follow one another; tables have an entry for each pair.
void turn_neighbours(const Places &first) {
    float pairs[2 * kPairs], turned[2 * kPairs];
    std::memcpy(pairs, first[kSource], sizeof pairs);
    const Floats cosine(first[kCosine]), sine(first[kSine]);
    for (int64_t pair = 0; pair < kPairs; ++pair) {
        const float a = pairs[2 * pair], b = pairs[2 * pair + 1];
        turned[2 * pair] = a * cosine.at[pair] - b * sine.at[pair];
        turned[2 * pair + 1] = b * cosine.at[pair] + a * sine.at[pair];
    }
    std::memcpy(first[kTarget], turned, sizeof turned);
}

void turn_pair(const Places &first, const Distances &partners) {
    const auto second = [&](Operand operand) {
        return load<float>(first[operand] + partners[operand]);
    };
    const float a = load<float>(first[kSource]), b = second(kSource);
    const float turned_a = a * load<float>(first[kCosine]) - b * load<float>(first[kSine]);
    const float turned_b = b * second(kCosine) + a * second(kSine);
    store(first[kTarget], turned_a);
    store(first[kTarget] + partners[kTarget], turned_b);
}

class RotaryKernel : public Kernel {
  public:
    explicit RotaryKernel(const Rotary &given)
        : r_(given), nest_(given.shape, given.strides),
          positions_(has_positions() ? given.shape : Dims{0},
                     {has_positions() ? given.strides[kCosine] : Dims{0}}),
          are_halves_(given.steps == Distances{kFloat, kFloat, kFloat, kFloat}),
          are_neighbours_(given.steps == Distances{2 * kFloat, kFloat, kFloat, 2 * kFloat} &&
                          given.partners == Distances{kFloat, 0, 0, kFloat}) {}

    void run(std::span<char *const> operands, int threads) const override {
        if (has_positions())
            check(operands[3]);
        const Distances &along = nest_.row_steps();
        nest_.for_each_row(
            threads,
            [&](const Distances &offsets, int64_t length) {
                for (int64_t row = 0; row < length; ++row)
                    turn_row(places_of(operands, offsets, along, row));
            },
            std::max<int64_t>(2 * r_.pairs + r_.rest, 1));
    }

    std::vector<Reach> reach() const override {
        const auto along_rows = [&](Operand operand) {
            return joined(nest_.reach(operand, kFloat), row_reach(operand), kFloat);
        };
        const Reach source = along_rows(kSource), target = along_rows(kTarget);
        if (!has_positions())
            return {source, along_rows(kCosine), along_rows(kSine), target};
        const Reach rows = reach_of({r_.position_count}, {r_.pairs * kFloat}, kFloat);
        return {source, joined(rows, row_reach(kCosine), kFloat),
                joined(rows, row_reach(kSine), kFloat), positions_.reach(0, sizeof(int64_t)),
                target};
    }

  private:
    /// Returns the bytes that a row of an operand spans: its pairs, and the elements behind them.
    Reach row_reach(Operand operand) const {
        const Reach pairs =
            reach_of({r_.pairs, 2}, {r_.steps[operand], r_.partners[operand]}, kFloat);
        if (r_.rest == 0 || operand == kCosine || operand == kSine)
            return pairs;
        const int64_t step = operand == kSource ? r_.source_step : r_.target_step;
        const Reach rest = reach_of({2 * r_.pairs + r_.rest}, {step}, kFloat);
        return {std::min(pairs.low, rest.low), std::max(pairs.high, rest.high)};
    }

    bool has_positions() const { return r_.position_count > 0; }

    void check(const char *positions) const {
        const int64_t step = positions_.row_steps()[0];
        positions_.for_each_row(1, [&](const auto &offsets, int64_t length) {
            for (int64_t index = 0; index < length; ++index) {
                const auto position = load<int64_t>(positions + offsets[0] + index * step);
                if (position < 0 || position >= r_.position_count)
                    throw KernelError("Node `" + r_.node + "` has a position of " +
                                      std::to_string(position) + "; it must be in [0, " +
                                      std::to_string(r_.position_count - 1) + "].");
            }
        });
    }

    Places places_of(std::span<char *const> operands, const Distances &offsets,
                     const Distances &along, int64_t row) const {
        const auto offset = [&](Operand operand) {
            return offsets[operand] + row * along[operand];
        };
        int64_t cosine = offset(kCosine), sine = offset(kSine);
        if (has_positions())
            cosine = sine = load<int64_t>(operands[3] + cosine) * r_.pairs * kFloat;
        return {operands[0] + offset(kSource), operands[1] + cosine, operands[2] + sine,
                operands.back() + offset(kTarget)};
    }

    void turn_row(Places first) const {
        char *const source = first[kSource], *const target = first[kTarget];
        int64_t pair = 0;
        for (; (are_halves_ || are_neighbours_) && pair + kPairs <= r_.pairs; pair += kPairs) {
            if (are_halves_)
                turn_halves(first, r_.partners);
            else
                turn_neighbours(first);
            advance(first, kPairs);
        }
        for (; pair < r_.pairs; ++pair) {
            turn_pair(first, r_.partners);
            advance(first, 1);
        }
        if (r_.rest > 0 && source != target)
            copy_span<float>(source + 2 * r_.pairs * r_.source_step, r_.source_step,
                             target + 2 * r_.pairs * r_.target_step, r_.target_step, r_.rest);
    }

    void advance(Places &first, int64_t pairs) const {
        for (size_t operand = 0; operand < first.size(); ++operand)
            first[operand] += pairs * r_.steps[operand];
    }

    Rotary r_;
    LoopNest<4> nest_;
    LoopNest<1> positions_;
    bool are_halves_, are_neighbours_;
};

} // namespace

std::shared_ptr<const Kernel> rotary(const Rotary &rotary) {
    counted({rotary.pairs, 2 * kFloat});
    counted({rotary.rest, kFloat});
    counted({rotary.position_count, rotary.pairs, kFloat});
    auto kernel = std::make_shared<RotaryKernel>(rotary);
    kernel->reach();
    return kernel;
}

} // namespace tightship::kernels
