#include "tightship/kernels/movement/movement.hpp"

#include "tightship/kernels/movement/strided_copy.hpp"

namespace tightship::kernels {

namespace {

constexpr size_t kOperandsMax = 1 << 16;

class Moves : public Kernel {
  public:
    Moves(int64_t item_bytes, const std::vector<Move> &moves) {
        for (const auto &[shape, source, target] : moves) {
            require(std::max(source.operand, target.operand) < kOperandsMax,
                    "a kernel moves between too many operands");
            require(std::min(source.offset_bytes, target.offset_bytes) > -kReachMax &&
                        std::max(source.offset_bytes, target.offset_bytes) < kReachMax,
                    "a kernel moves from impossible places");
            each_.push_back({StridedCopy(item_bytes, shape, source.strides, target.strides),
                             source.operand, target.operand, source.offset_bytes,
                             target.offset_bytes});
        }
    }

    void run(std::span<char *const> operands, int threads) const override {
        for (const Each &each : each_)
            each.copy.run(operands[each.source] + each.source_offset,
                          operands[each.target] + each.target_offset, threads);
    }

    size_t written() const override {
        size_t first = kOperandsMax;
        for (const Each &each : each_)
            first = std::min(first, each.target);
        return each_.empty() ? 0 : reach().size() - first;
    }

    std::vector<Reach> reach() const override {
        std::vector<Reach> all;
        const auto add = [&](size_t operand, Reach part, int64_t offset) {
            if (all.size() <= operand)
                all.resize(operand + 1, Reach{0, 0});
            if (part.low == part.high)
                return;
            Reach &whole = all[operand];
            const bool is_first = whole.low == whole.high;
            const Reach moved{part.low + offset, part.high + offset};
            whole = is_first
                        ? moved
                        : Reach{std::min(whole.low, moved.low), std::max(whole.high, moved.high)};
        };
        for (const Each &each : each_) {
            add(each.source, each.copy.source_reach(), each.source_offset);
            add(each.target, each.copy.target_reach(), each.target_offset);
        }
        return all;
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
