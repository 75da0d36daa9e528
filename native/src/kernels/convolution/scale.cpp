#include "tightship/kernels/convolution/scale.hpp"

#include "tightship/cpu/clones.hpp"
#include "tightship/kernels/loop_nest.hpp"

namespace tightship::kernels {

namespace {

using Steps = std::array<int64_t, 3>; ///< bytes, of source, scales, target

template <class T> T *moved(T *pointer, int64_t bytes) {
    return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(pointer) +
                                 static_cast<uintptr_t>(bytes));
}

/// Scales rows of adjacent elements, each row by one scale, or each element by its own.
TIGHTSHIP_CLONES void scale_rows(const float *source, const float *scales, float *target,
                                 int64_t rows, int64_t length, const Steps &steps,
                                 bool is_repeated) {
    for (; rows > 0; --rows) {
        if (is_repeated) {
            const float factor = *scales;
            TIGHTSHIP_INDEPENDENT
            for (int64_t index = 0; index < length; ++index)
                target[index] = source[index] * factor;
        } else {
            TIGHTSHIP_INDEPENDENT
            for (int64_t index = 0; index < length; ++index)
                target[index] = source[index] * scales[index];
        }
        source = moved(source, steps[0]);
        scales = moved(scales, steps[1]);
        target = moved(target, steps[2]);
    }
}

class Scale : public Kernel {
  public:
    explicit Scale(const LoopNest<3> &nest) : nest_(nest) {}

    void run(std::span<char *const> operands, int threads) const override {
        const bool is_repeated = nest_.row_steps()[1] == 0;
        nest_.for_each_block(threads, [&](const Steps &offsets, int64_t rows, int64_t length) {
            const auto at = [&](size_t operand) {
                return reinterpret_cast<float *>(operands[operand] + offsets[operand]);
            };
            scale_rows(at(0), at(1), at(2), rows, length, nest_.block_steps(), is_repeated);
        });
    }

    std::vector<Reach> reach() const override {
        return {nest_.reach(0, sizeof(float)), nest_.reach(1, sizeof(float)),
                nest_.reach(2, sizeof(float))};
    }

  private:
    LoopNest<3> nest_;
};

} // namespace

std::shared_ptr<const Kernel> scale(const std::vector<int64_t> &shape,
                                    const std::array<std::vector<int64_t>, 3> &strides) {
    const LoopNest<3> nest(shape, strides);
    const auto [source, scales, target] = nest.row_steps();
    const auto item = static_cast<int64_t>(sizeof(float));
    require(nest.row_length() <= 1 ||
                (source == item && target == item && (scales == item || scales == 0)),
            "a kernel scales elements that do not lie together");
    return std::make_shared<Scale>(nest);
}

} // namespace tightship::kernels
