#include "column_shares.hpp"
#include "cpu/this_cpu.hpp"
#include "encoded_task.hpp"
#include "row_indices.hpp"

#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

struct EncodedLoops {
    EncodedPreparation prepare; ///< null for none
    EncodedLoop multiply;
    bool has_panels = false; ///< of integers
};

EncodedLoops loops_of(BlockMode mode, BlockLevel level, bool is_many) {
    const bool is_int8 = mode == BlockMode::kInt8;
#ifdef __x86_64__
    if (level >= BlockLevel::kVnni && is_int8)
        return is_many
                   ? EncodedLoops{vnni::round_encoded_panels, vnni::multiply_encoded_panels, true}
                   : EncodedLoops{vnni::round_encoded, vnni::multiply_encoded_int8};
    if (level >= BlockLevel::kAvx512)
        return is_int8   ? EncodedLoops{avx512::round_encoded, avx512::multiply_encoded_int8}
               : is_many ? EncodedLoops{nullptr, avx512::multiply_encoded_rows}
                         : EncodedLoops{nullptr, avx512::multiply_encoded};
    if (level >= BlockLevel::kAvx2)
        return is_int8   ? EncodedLoops{avx2::round_encoded, avx2::multiply_encoded_int8}
               : is_many ? EncodedLoops{nullptr, avx2::multiply_encoded_rows}
                         : EncodedLoops{nullptr, avx2::multiply_encoded};
#endif
    (void)level, (void)is_many;
    return is_int8 ? EncodedLoops{portable::round_encoded, portable::multiply_encoded_int8}
                   : EncodedLoops{nullptr, portable::multiply_encoded};
}

int64_t row_bytes_of(RowCode type, int64_t depth) {
    const RowUnit unit = row_unit(type);
    require(depth > 0 && depth % unit.elements == 0, "a row of encoded elements ends in a unit");
    return depth / unit.elements * unit.bytes;
}

class EncodedProduct : public Kernel {
  public:
    EncodedProduct(const BlockProductShape &shape, RowCode type, bool has_bias, BlockMode mode,
                   BlockLevel level)
        : shape_(shape), type_(type), has_bias_(has_bias), is_int8_(mode == BlockMode::kInt8),
          is_many_(is_int8_ ? shape.rows >= kEncodedPanelRows : shape.rows > kBlockFewRows),
          loops_(loops_of(mode, level, is_many_)), row_bytes_(row_bytes_of(type, shape.depth)) {}

    int64_t scratch_bytes(int threads) const override {
        return shared_bytes() + threads * thread_bytes();
    }

    void run(std::span<char *const> operands, int threads) const override {
        EncodedTask whole{task_of(operands), type_};
        const int64_t most = rows_at_once();
        for (int64_t row = 0; row < shape_.rows; row += most) {
            whole.block.source = operands[0] + row * shape_.source_row;
            whole.block.target = operands[operands.size() - 2] + row * shape_.target_row;
            whole.block.rows = std::min(most, shape_.rows - row);
            prepare(whole, threads);
            multiply(whole, operands.back() + shared_bytes(), threads);
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
        task.format.block = encoded_group(type_);
        task.blocks = shape_.depth / task.format.block;
        task.shared = operands.back();
        task.shared_row = shared_row();
        return task;
    }

    void prepare(const EncodedTask &task, int threads) const {
        if (loops_.prepare == nullptr)
            return;
        const int64_t grain = (int64_t{1} << 14) / shape_.depth + 1;
        parallel_for(threads, task.block.rows, grain,
                     [&](int64_t begin, int64_t end) { loops_.prepare(task, begin, end); });
    }

    void multiply(const EncodedTask &whole, char *scratch, int threads) const {
        share_columns(shape_.columns, threads, [&](int64_t thread, int64_t first, int64_t end) {
            EncodedTask task = whole;
            task.block.scratch = scratch + thread * thread_bytes();
            task.block.first_column = first;
            task.block.column_end = end;
            loops_.multiply(task);
        });
    }

    int64_t shared_row() const {
        return loops_.has_panels ? encoded_panel_bytes(type_, shape_.depth)
                                 : encoded_int8_bytes(type_, shape_.depth);
    }

    /// Returns the rows that are prepared at once: as many as their bytes hold.
    int64_t rows_at_once() const {
        if (!is_int8_)
            return kBlockRows;
        return kEncodedRows * encoded_int8_bytes(type_, shape_.depth) / shared_row();
    }

    /// Bytes of rows of activations in int8.
    int64_t shared_bytes() const {
        return is_int8_
                   ? std::min(shape_.rows, kEncodedRows) * encoded_int8_bytes(type_, shape_.depth)
                   : 0;
    }

    /// Bytes for a row of weights, or for panels; they depend on no instruction set, so that a plan
    /// made on one processor holds on every other.
    int64_t thread_bytes() const {
        const int64_t row = block_round_up(kBlockFloat * shape_.depth, kBlockLine);
        return is_many_ ? std::max(is_int8_ ? kEncodedPanel : kBlockPanels, row) : row;
    }

    BlockProductShape shape_;
    RowCode type_;
    bool has_bias_, is_int8_, is_many_;
    EncodedLoops loops_;
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
                                              bool has_bias, BlockMode mode, BlockLevel most) {
    require(mode == BlockMode::kExact || !is_halves(type),
            "encoded halves are multiplied by float32 alone");
    require(std::min({shape.rows, shape.depth, shape.columns}) > 0, "a kernel multiplies nothing");
    counted({shape.rows + kBlockRows, shape.depth + kBlockDepth, kItemMax}, 1);
    counted({shape.columns + kBlockColumns, shape.depth + kBlockDepth, kItemMax}, 1);
    require(shape.source_row % kBlockFloat == 0 && shape.target_row % kBlockFloat == 0,
            "a kernel multiplies between elements");
    auto made = std::make_shared<EncodedProduct>(shape, type, has_bias, mode,
                                                 std::min(block_level(), most));
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
