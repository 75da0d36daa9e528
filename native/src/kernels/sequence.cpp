#include "tightship/kernels/sequence.hpp"

#include "tightship/kernels/spans.hpp"

namespace tightship::kernels {

namespace {

constexpr int64_t kGrainBytes = 1 << 16; ///< bytes that are worth a thread

class Reverse : public Kernel {
  public:
    explicit Reverse(const Sequences &given) : s_(given) {}

    void run(std::span<char *const> operands, int threads) const override {
        const char *lengths = operands[1];
        for (int64_t index = 0; index < s_.count; ++index)
            check(load<int64_t>(lengths + 8 * index));
        const int64_t grain = kGrainBytes / std::max<int64_t>(s_.row_bytes, 1);
        parallel_for(threads, s_.count * s_.steps, grain, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
                const int64_t index = s_.steps_first ? row % s_.count : row / s_.steps;
                const int64_t step = s_.steps_first ? row / s_.count : row % s_.steps;
                const auto length = load<int64_t>(lengths + 8 * index);
                const int64_t source = step < length ? length - 1 - step : step;
                const int64_t apart = s_.steps_first ? s_.count : 1;
                copy_bytes(operands[0] + (row + (source - step) * apart) * s_.row_bytes,
                           operands[2] + row * s_.row_bytes, s_.row_bytes);
            }
        });
    }

  private:
    void check(int64_t length) const {
        if (length < 0 || length > s_.steps)
            throw KernelError("Node `" + s_.node + "` reverses " + std::to_string(length) +
                              " steps of a sequence; there must be at least 0 and at most " +
                              std::to_string(s_.steps) + ".");
    }

    Sequences s_;
};

class AppendKernel : public Kernel {
  public:
    explicit AppendKernel(const Append &given) : a_(given) {}

    void run(std::span<char *const> operands, int threads) const override {
        const char *firsts = a_.has_firsts ? operands[2] : nullptr;
        char *target = operands[a_.has_firsts ? 3 : 2];
        for (int64_t batch = 0; batch < a_.batches; ++batch)
            check(first_step(firsts, batch));
        if (operands[0] != target)
            copy_past(operands[0], target, threads);
        for (int64_t group = 0; group < a_.batches * a_.groups; ++group) {
            const int64_t first = first_step(firsts, group / a_.groups) % a_.steps;
            const int64_t before_end = std::min(a_.new_steps, a_.steps - first);
            const char *update = operands[1] + group * a_.new_steps * a_.row_bytes;
            char *to = target + group * a_.steps * a_.row_bytes;
            copy_bytes(update, to + first * a_.row_bytes, before_end * a_.row_bytes);
            copy_bytes(update + before_end * a_.row_bytes, to,
                       (a_.new_steps - before_end) * a_.row_bytes);
        }
    }

  private:
    static int64_t first_step(const char *firsts, int64_t batch) {
        return firsts == nullptr ? 0 : load<int64_t>(firsts + 8 * batch);
    }

    void check(int64_t first) const {
        const int64_t last = a_.is_circular ? a_.steps - 1 : a_.steps - a_.new_steps;
        if (first < 0 || first > last)
            throw KernelError("Node `" + a_.node + "` writes " + std::to_string(a_.new_steps) +
                              " steps from step " + std::to_string(first) +
                              " on; it must be in [0, " + std::to_string(last) + "].");
    }

    void copy_past(const char *past, char *target, int threads) const {
        const int64_t size_bytes = a_.batches * a_.groups * a_.steps * a_.row_bytes;
        parallel_for(threads, size_bytes, kGrainBytes, [&](int64_t begin, int64_t end) {
            copy_bytes(past + begin, target + begin, end - begin);
        });
    }

    Append a_;
};

constexpr int64_t kPairs = 8; ///< turned at once: read before any of them is written

struct Angles {
    const char *cosines, *sines;
};

/// Turns kPairs pairs whose halves are `apart` bytes from each other.
void turn_halves(const char *x, char *y, const Angles &angles, int64_t apart) {
    float a[kPairs], b[kPairs], c[kPairs], s[kPairs], real[kPairs], imaginary[kPairs];
    const auto size = sizeof a;
    std::memcpy(a, x, size);
    std::memcpy(b, x + apart, size);
    std::memcpy(c, angles.cosines, size);
    std::memcpy(s, angles.sines, size);
    for (int64_t pair = 0; pair < kPairs; ++pair) {
        real[pair] = c[pair] * a[pair] - s[pair] * b[pair];
        imaginary[pair] = s[pair] * a[pair] + c[pair] * b[pair];
    }
    std::memcpy(y, real, size);
    std::memcpy(y + apart, imaginary, size);
}

/// Turns kPairs pairs that lie side by side.
void turn_neighbours(const char *x, char *y, const Angles &angles) {
    float pairs[2 * kPairs], c[kPairs], s[kPairs], turned[2 * kPairs];
    std::memcpy(pairs, x, sizeof pairs);
    std::memcpy(c, angles.cosines, sizeof c);
    std::memcpy(s, angles.sines, sizeof s);
    for (int64_t pair = 0; pair < kPairs; ++pair) {
        const float a = pairs[2 * pair], b = pairs[2 * pair + 1];
        turned[2 * pair] = c[pair] * a - s[pair] * b;
        turned[2 * pair + 1] = s[pair] * a + c[pair] * b;
    }
    std::memcpy(y, turned, sizeof turned);
}

void turn_pair(const char *x, int64_t x_apart, char *y, int64_t y_apart, float c, float s) {
    const float a = load<float>(x), b = load<float>(x + x_apart);
    store(y, c * a - s * b);
    store(y + y_apart, s * a + c * b);
}

class RotaryEmbeddingKernel : public Kernel {
  public:
    explicit RotaryEmbeddingKernel(const RotaryEmbedding &given)
        : r_(given), nest_(given.shape, {given.source, given.target, given.angles}),
          positions_(given.position_count > 0 ? given.shape : Dims{0},
                     {r_.position_count > 0 ? given.angles : Dims{0}}) {}

    void run(std::span<char *const> operands, int threads) const override {
        const bool has_positions = r_.position_count > 0;
        if (has_positions)
            check(operands[3]);
        char *target = operands[has_positions ? 4 : 3];
        const auto [x_step, y_step, angle_step] = nest_.row_steps();
        nest_.for_each_row(
            threads,
            [&, x_step = x_step, y_step = y_step, angle_step = angle_step](const auto &offsets,
                                                                           int64_t length) {
                for (int64_t row = 0; row < length; ++row) {
                    int64_t angle = offsets[2] + row * angle_step;
                    if (has_positions)
                        angle = load<int64_t>(operands[3] + angle) * r_.pairs * kFloat;
                    turn_row(operands[0] + offsets[0] + row * x_step,
                             target + offsets[1] + row * y_step,
                             {operands[1] + angle, operands[2] + angle});
                }
            },
            std::max<int64_t>(r_.row_length, 1));
    }

  private:
    static constexpr int64_t kFloat = sizeof(float);

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

    void turn_row(const char *x, char *y, const Angles &angles) const {
        const bool together = r_.x_step == kFloat;
        const int64_t between = r_.is_interleaved ? 1 : r_.pairs;
        for (int64_t pair = 0; pair < r_.pairs;) {
            const Angles here{angles.cosines + pair * kFloat, angles.sines + pair * kFloat};
            if (together && r_.is_interleaved && pair + kPairs <= r_.pairs) {
                turn_neighbours(x + 2 * pair * kFloat, y + 2 * pair * kFloat, here);
                pair += kPairs;
                continue;
            }
            if (together && pair + kPairs <= r_.pairs) {
                turn_halves(x + pair * kFloat, y + pair * kFloat, here, between * kFloat);
                pair += kPairs;
                continue;
            }
            const int64_t first = r_.is_interleaved ? 2 * pair : pair;
            turn_pair(x + first * r_.x_step, between * r_.x_step, y + first * kFloat,
                      between * kFloat, load<float>(here.cosines), load<float>(here.sines));
            ++pair;
        }
        const int64_t done = 2 * r_.pairs;
        if (x != y)
            copy_span<float>(x + done * r_.x_step, r_.x_step, y + done * kFloat, kFloat,
                             r_.row_length - done);
    }

    RotaryEmbedding r_;
    LoopNest<3> nest_;
    LoopNest<1> positions_;
};

} // namespace

std::shared_ptr<const Kernel> reverse_sequences(const Sequences &sequences) {
    return std::make_shared<Reverse>(sequences);
}

std::shared_ptr<const Kernel> append(const Append &append) {
    return std::make_shared<AppendKernel>(append);
}

std::shared_ptr<const Kernel> rotary_embedding(const RotaryEmbedding &embedding) {
    return std::make_shared<RotaryEmbeddingKernel>(embedding);
}

} // namespace tightship::kernels
