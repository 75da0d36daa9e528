#include "column_shares.hpp"
#include "cpu/this_cpu.hpp"
#include "encoded_task.hpp"
#include "row_indices.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

EncodedLoop loop_of(BlockLevel level, bool is_many) {
#ifdef __x86_64__
    if (level >= BlockLevel::kAvx512)
        return is_many ? avx512::multiply_encoded_rows : avx512::multiply_encoded;
    if (level >= BlockLevel::kAvx2)
        return is_many ? avx2::multiply_encoded_rows : avx2::multiply_encoded;
#endif
    (void)level, (void)is_many;
    return portable::multiply_encoded;
}

int64_t row_bytes_of(RowCode type, int64_t depth) {
    const RowUnit unit = row_unit(type);
    require(depth > 0 && depth % unit.elements == 0, "a row of encoded elements ends in a unit");
    return depth / unit.elements * unit.bytes;
}

class EncodedProduct : public Kernel {
  public:
    EncodedProduct(const BlockProductShape &shape, RowCode type, bool has_bias, BlockLevel level)
        : shape_(shape), type_(type), has_bias_(has_bias), is_many_(shape.rows > kBlockFewRows),
          loop_(loop_of(level, is_many_)), row_bytes_(row_bytes_of(type, shape.depth)) {}

    int64_t scratch_bytes(int threads) const override { return threads * thread_bytes(); }

    void run(std::span<char *const> operands, int threads) const override {
        EncodedTask whole{task_of(operands), type_};
        for (int64_t row = 0; row < shape_.rows; row += kBlockRows) {
            whole.block.source = operands[0] + row * shape_.source_row;
            whole.block.target = operands[operands.size() - 2] + row * shape_.target_row;
            whole.block.rows = std::min(kBlockRows, shape_.rows - row);
            multiply(whole, operands.back(), threads);
        }
    }

    std::vector<Reach> reach() const override {
        const auto [rows, depth, columns, source_row, target_row] = shape_;
        std::vector<Reach> all{reach_of({rows, depth}, {source_row, kBlockFloat}, kBlockFloat),
                               dense(columns, row_bytes_)};
        if (has_bias_)
            all.push_back(dense(columns, kBlockFloat));
        all.push_back(reach_of({rows, columns}, {target_row, kBlockFloat}, kBlockFloat));
        return all;
    }

  private:
    BlockTask task_of(std::span<char *const> operands) const {
        BlockTask task{};
        task.format.quants_row = row_bytes_;
        task.matrix.quants = operands[1];
        if (has_bias_)
            task.bias = reinterpret_cast<const float *>(operands[2]);
        task.source_row = shape_.source_row;
        task.target_row = shape_.target_row;
        task.depth = shape_.depth;
        return task;
    }

    void multiply(const EncodedTask &whole, char *scratch, int threads) const {
        share_columns(shape_.columns, threads, [&](int64_t thread, int64_t first, int64_t end) {
            EncodedTask task = whole;
            task.block.scratch = scratch + thread * thread_bytes();
            task.block.first_column = first;
            task.block.column_end = end;
            loop_(task);
        });
    }

    /// Bytes for a row of weights, or for panels; they depend on no instruction set, so that a plan
    /// made on one processor holds on every other.
    int64_t thread_bytes() const {
        const int64_t row = block_round_up(kBlockFloat * shape_.depth, kBlockLine);
        return is_many_ ? std::max(kBlockPanels, row) : row;
    }

    BlockProductShape shape_;
    RowCode type_;
    bool has_bias_, is_many_;
    EncodedLoop loop_;
    int64_t row_bytes_;
};

class EncodedGather : public Kernel {
  public:
    EncodedGather(const BlockGatherShape &shape, RowCode type)
        : shape_(shape), type_(type), row_bytes_(row_bytes_of(type, shape.depth)) {}

    void run(std::span<char *const> operands, int threads) const override {
        const RowIndices indices{shape_, operands[1]};
        if (!shape_.zeros_if_outside)
            indices.check();
        const int64_t grain = (int64_t{1} << 14) / shape_.depth + 1;
        parallel_for(threads, shape_.count, grain, [&](int64_t begin, int64_t end) {
            for (int64_t place = begin; place < end; ++place) {
                auto *to = reinterpret_cast<float *>(operands[2] + place * shape_.target_row);
                const int64_t row = indices.at(place);
                if (row >= 0 && row < shape_.rows)
                    decode_row(type_, operands[0] + row * row_bytes_, shape_.depth, to);
                else
                    std::fill(to, to + shape_.depth, 0.0F);
            }
        });
    }

    std::vector<Reach> reach() const override {
        return {
            dense(shape_.rows, row_bytes_), dense(shape_.count, shape_.index_bytes),
            reach_of({shape_.count, shape_.depth}, {shape_.target_row, kBlockFloat}, kBlockFloat)};
    }

  private:
    BlockGatherShape shape_;
    RowCode type_;
    int64_t row_bytes_;
};

} // namespace

std::shared_ptr<const Kernel> encoded_product(const BlockProductShape &shape, RowCode type,
                                              bool has_bias, BlockLevel most) {
    require(std::min({shape.rows, shape.depth, shape.columns}) > 0, "a kernel multiplies nothing");
    counted({shape.rows + kBlockRows, shape.depth + kBlockDepth, kItemMax}, 1);
    counted({shape.columns + kBlockColumns, shape.depth + kBlockDepth, kItemMax}, 1);
    require(shape.source_row % kBlockFloat == 0 && shape.target_row % kBlockFloat == 0,
            "a kernel multiplies between elements");
    auto made =
        std::make_shared<EncodedProduct>(shape, type, has_bias, std::min(block_level(), most));
    made->reach();
    return made;
}

std::shared_ptr<const Kernel> encoded_gather(const BlockGatherShape &shape, RowCode type) {
    require_gather(shape);
    auto made = std::make_shared<EncodedGather>(shape, type);
    made->reach();
    return made;
}

} // namespace tightship::kernels
