#include "tightship/kernels/movement.hpp"

#include <cstring>

namespace tightship::kernels {

namespace {

template <class Item>
void copy_row(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t length) {
    for (int64_t index = 0; index < length; ++index)
        std::memcpy(to + index * to_step, from + index * from_step, sizeof(Item));
}

struct Wide {
    char bytes[16];
};

class Copy : public Kernel {
  public:
    Copy(int64_t item_bytes, const Dims &shape, const Dims &source, const Dims &target)
        : nest_(shape, {source, target}), item_bytes_(item_bytes) {}

    void run(std::span<char *const> operands, int threads) const override {
        const char *source = operands[0];
        char *target = operands[1];
        const auto [from_step, to_step] = nest_.row_steps();
        nest_.for_each_row(threads, [&](const auto &offsets, int64_t length) {
            const char *from = source + offsets[0];
            char *to = target + offsets[1];
            if (from_step == item_bytes_ && to_step == item_bytes_)
                std::memmove(to, from, static_cast<size_t>(length * item_bytes_));
            else
                copy_items(from, from_step, to, to_step, length);
        });
    }

  private:
    void copy_items(const char *from, int64_t from_step, char *to, int64_t to_step,
                    int64_t length) const {
        switch (item_bytes_) {
        case 1:
            return copy_row<char>(from, from_step, to, to_step, length);
        case 2:
            return copy_row<int16_t>(from, from_step, to, to_step, length);
        case 4:
            return copy_row<int32_t>(from, from_step, to, to_step, length);
        case 8:
            return copy_row<int64_t>(from, from_step, to, to_step, length);
        default:
            return copy_row<Wide>(from, from_step, to, to_step, length);
        }
    }

    LoopNest<2> nest_;
    int64_t item_bytes_;
};

} // namespace

std::shared_ptr<const Kernel> copy(int64_t item_bytes, const Dims &shape,
                                   const Dims &source_strides, const Dims &target_strides) {
    return std::make_shared<Copy>(item_bytes, shape, source_strides, target_strides);
}

} // namespace tightship::kernels
