#include "block_reader.hpp"

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
        const char *indices = operands[operands.size() - 2];
        if (!shape_.zeros_if_outside)
            check(indices);
        const BlockMatrix matrix{operands[0], operands[1], operands[2]};
        const int64_t grain = (int64_t{1} << 14) / shape_.depth + 1;
        parallel_for(threads, shape_.count, grain, [&](int64_t begin, int64_t end) {
            for (int64_t place = begin; place < end; ++place) {
                auto *to = reinterpret_cast<float *>(operands.back() + place * shape_.target_row);
                const int64_t row = index_of(indices, place);
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
    /// Returns an index, to which a negative one's row count is added.
    int64_t index_of(const char *indices, int64_t place) const {
        const char *from = indices + place * shape_.index_bytes;
        const int64_t index = shape_.index_bytes == 4 ? load<int32_t>(from) : load<int64_t>(from);
        return index < 0 ? index + shape_.rows : index;
    }

    void check(const char *indices) const {
        for (int64_t place = 0; place < shape_.count; ++place) {
            const int64_t row = index_of(indices, place);
            if (row >= 0 && row < shape_.rows)
                continue;
            throw KernelError("Node `" + shape_.node + "` selects row " +
                              std::to_string(row < 0 ? row - shape_.rows : row) + " of " +
                              std::to_string(shape_.rows) + "; indices must be in [" +
                              std::to_string(-shape_.rows) + ", " +
                              std::to_string(shape_.rows - 1) + "].");
        }
    }

    BlockGatherShape shape_;
    BlockFormat format_;
};

} // namespace

std::shared_ptr<const Kernel> block_gather(const BlockGatherShape &shape,
                                           const BlockFormat &format) {
    require(shape.index_bytes == 4 || shape.index_bytes == 8,
            "a kernel has indices of another size");
    require(shape.count >= 0 && shape.rows > 0 && shape.depth > 0, "a kernel gathers nothing");
    require(shape.target_row % kFloat == 0, "a kernel gathers between elements");
    auto made = std::make_shared<BlockGather>(shape, format);
    made->reach();
    return made;
}

} // namespace tightship::kernels
