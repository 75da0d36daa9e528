#include "tightship/kernels/movement.hpp"

#include "tightship/kernels/strided_copy.hpp"

namespace tightship::kernels {

namespace {

class Moves : public Kernel {
  public:
    Moves(int64_t item_bytes, const std::vector<Move> &moves) {
        for (const auto &[shape, source, target] : moves)
            each_.push_back({StridedCopy(item_bytes, shape, source.strides, target.strides),
                             source.operand, target.operand, source.offset_bytes,
                             target.offset_bytes});
    }

    void run(std::span<char *const> operands, int threads) const override {
        for (const Each &each : each_)
            each.copy.run(operands[each.source] + each.source_offset,
                          operands[each.target] + each.target_offset, threads);
    }

  private:
    struct Each {
        StridedCopy copy;
        size_t source, target;
        int64_t source_offset, target_offset;
    };
    std::vector<Each> each_;
};

} // namespace

std::shared_ptr<const Kernel> moves(int64_t item_bytes, const std::vector<Move> &moves) {
    return std::make_shared<Moves>(item_bytes, moves);
}

std::shared_ptr<const Kernel> copy(int64_t item_bytes, const Dims &shape,
                                   const Dims &source_strides, const Dims &target_strides) {
    const Move whole{shape, {0, 0, source_strides}, {1, 0, target_strides}};
    return moves(item_bytes, {whole});
}

} // namespace tightship::kernels
