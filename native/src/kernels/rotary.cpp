#include "tightship/kernels/rotary.hpp"

#include <utility>

namespace tightship::kernels {

namespace {

using Offsets = std::array<int64_t, 4>;

enum Operand : size_t { kSource, kCosine, kSine, kTarget };

float at(const char *address) {
    return *reinterpret_cast<const float *>(address);
}

/// Pairs whose elements lie side by side with those of the next pair, in all operands.
void turn_dense(const std::array<char *, 4> &first, const Offsets &partners, int64_t count) {
    const auto *a = reinterpret_cast<const float *>(first[kSource]);
    const auto *b = reinterpret_cast<const float *>(first[kSource] + partners[kSource]);
    const auto *cosine_a = reinterpret_cast<const float *>(first[kCosine]);
    const auto *cosine_b = reinterpret_cast<const float *>(first[kCosine] + partners[kCosine]);
    const auto *sine_a = reinterpret_cast<const float *>(first[kSine]);
    const auto *sine_b = reinterpret_cast<const float *>(first[kSine] + partners[kSine]);
    auto *__restrict target_a = reinterpret_cast<float *>(first[kTarget]);
    auto *__restrict target_b = reinterpret_cast<float *>(first[kTarget] + partners[kTarget]);
    for (int64_t index = 0; index < count; ++index) {
        target_a[index] = a[index] * cosine_a[index] - b[index] * sine_a[index];
        target_b[index] = b[index] * cosine_b[index] + a[index] * sine_b[index];
    }
}

void turn(std::array<char *, 4> first, const Offsets &steps, const Offsets &partners,
          int64_t count) {
    for (int64_t index = 0; index < count; ++index) {
        const float a = at(first[kSource]), b = at(first[kSource] + partners[kSource]);
        const float cosine_b = at(first[kCosine] + partners[kCosine]);
        const float sine_b = at(first[kSine] + partners[kSine]);
        *reinterpret_cast<float *>(first[kTarget]) = a * at(first[kCosine]) - b * at(first[kSine]);
        *reinterpret_cast<float *>(first[kTarget] + partners[kTarget]) = b * cosine_b + a * sine_b;
        for (size_t operand = 0; operand < 4; ++operand)
            first[operand] += steps[operand];
    }
}

class Rotary : public Kernel {
  public:
    Rotary(const Dims &shape, const std::array<Dims, 4> &strides, const Offsets &partners)
        : nest_(shape, strides), partners_(partners) {}

    void run(std::span<char *const> operands, int threads) const override {
        const Offsets &steps = nest_.row_steps();
        const bool is_dense = steps == Offsets{4, 4, 4, 4};
        nest_.for_each_row(threads, [&](const auto &offsets, int64_t length) {
            std::array<char *, 4> first;
            for (size_t operand = 0; operand < 4; ++operand)
                first[operand] = operands[operand] + offsets[operand];
            if (is_dense)
                turn_dense(first, partners_, length);
            else
                turn(first, steps, partners_, length);
        });
    }

  private:
    LoopNest<4> nest_;
    Offsets partners_;
};

} // namespace

std::shared_ptr<const Kernel> rotary(const Dims &shape, const std::array<Dims, 4> &strides,
                                     const std::array<int64_t, 4> &partners) {
    return std::make_shared<Rotary>(shape, strides, partners);
}

} // namespace tightship::kernels
