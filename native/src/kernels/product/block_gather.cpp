#include "block_reader.hpp"
#include "row_indices.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kFloat = sizeof(float);

class BlockGather : public Kernel {
  public:
    BlockGather(const BlockGatherShape &shape, const BlockFormat &format)
        : shape_(shape), format_(format) {}

    void run(std::span<char *const> operands, int threads) const override {
        const RowIndices indices{shape_, operands[operands.size() - 2]};
        if (!shape_.zeros_if_outside)
            indices.check();
        const BlockMatrix matrix{operands[0], operands[1], operands[2]};
        const int64_t grain = (int64_t{1} << 14) / shape_.depth + 1;
        parallel_for(threads, shape_.count, grain, [&](int64_t begin, int64_t end) {
            for (int64_t place = begin; place < end; ++place) {
                auto *to = reinterpret_cast<float *>(operands.back() + place * shape_.target_row);
                const int64_t row = indices.at(place);
                if (row >= 0 && row < shape_.rows)
                    read_block_row(format_, matrix, row, shape_.depth, to);
                else
                    std::fill(to, to + shape_.depth, 0.0F);
            }
        });
    }

    std::vector<Reach> reach() const override {
        std::vector<Reach> all;
        append_reach(format_, shape_.rows, shape_.depth, all);
        all.push_back(dense(shape_.count, shape_.index_bytes));
        all.push_back(reach_of({shape_.count, shape_.depth}, {shape_.target_row, kFloat}, kFloat));
        return all;
    }

  private:
    BlockGatherShape shape_;
    BlockFormat format_;
};

} // namespace

std::shared_ptr<const Kernel> block_gather(const BlockGatherShape &shape,
                                           const BlockFormat &format) {
    require_gather(shape);
    auto made = std::make_shared<BlockGather>(shape, format);
    made->reach();
    return made;
}

} // namespace tightship::kernels
