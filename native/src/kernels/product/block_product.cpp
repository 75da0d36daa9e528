#include "block_task.hpp"
#include "column_shares.hpp"
#include "cpu/this_cpu.hpp"

#include "tightship/kernels/product/split_product.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kRowsOfTiles = 12;     ///< at least, for which the matrix unit pays
constexpr int64_t kRowsOfStrips = 3;     ///< at least, for which strips of columns pay
constexpr int64_t kRowsOfByteStrips = 8; ///< likewise, if quants have 8 bits
constexpr int64_t kStripRow = 4096;      ///< bytes of a column at most, likewise

struct Loops {
    BlockPreparation prepare; ///< null for none
    BlockLoop multiply;
    int64_t rows = kBlockRows; ///< at once
};

/// Returns whether a matrix's parts lie together, as vector loops want them.
bool is_together(const BlockFormat &format) {
    const int64_t item = float_bytes(format.scale);
    return format.quants_block == block_bytes(format) &&
           (format.scales_block == item || is_by_row(format)) &&
           (format.zeros != BlockZeros::kFloats || format.zeros_block == format.scales_block);
}

/// Returns whether strips of columns multiply so many rows by blocks: whole chunks of 16 bytes
/// without zero points, short enough for a cache to hold a strip.
bool is_strip(int64_t rows, const BlockFormat &format) {
    return rows >= (format.bits == 8 ? kRowsOfByteStrips : kRowsOfStrips) &&
           format.block <= kBlockSummed && block_bytes(format) % kBlockTile == 0 &&
           format.zeros == BlockZeros::kMiddle && format.quants_row <= kStripRow;
}

Loops loops_of(BlockMode mode, BlockLevel level, int64_t rows, const BlockFormat &format) {
    const bool is_exact = mode == BlockMode::kExact, is_many = is_exact && rows > kBlockFewRows;
    const bool is_panel = !is_exact && rows >= kRowsOfTiles && format.block <= kBlockSummed;
#ifdef __x86_64__
    if (level >= BlockLevel::kAmx && is_exact)
        return {amx::split_exact, amx::multiply_exact, kBlockSplitRows};
    if (level >= BlockLevel::kAmx)
        return {amx::round_to_int8, amx::multiply_int8};
    if (level >= BlockLevel::kVnni && !is_exact)
        return is_panel ? Loops{vnni::round_to_int8_panels, vnni::multiply_int8_panels}
               : is_strip(rows, format)
                   ? Loops{vnni::round_to_int8_strips, vnni::multiply_int8_strips}
                   : Loops{vnni::round_to_int8, vnni::multiply_int8};
    if (level >= BlockLevel::kAvx512)
        return is_many    ? Loops{nullptr, avx512::multiply_exact_rows}
               : is_exact ? Loops{avx512::prepare_exact, avx512::multiply_exact}
                          : Loops{avx512::round_to_int8, avx512::multiply_int8};
    if (level >= BlockLevel::kAvx2)
        return is_many    ? Loops{nullptr, avx2::multiply_exact_rows}
               : is_panel ? Loops{avx2::round_to_int8_panels, avx2::multiply_int8_panels}
               : is_exact ? Loops{avx2::prepare_exact, avx2::multiply_exact}
                          : Loops{avx2::round_to_int8, avx2::multiply_int8};
#endif
    (void)level, (void)is_many, (void)is_panel;
    return is_exact ? Loops{nullptr, portable::multiply_exact}
                    : Loops{portable::round_to_int8, portable::multiply_int8};
}

class BlockProduct : public Kernel {
  public:
    BlockProduct(const BlockProductShape &shape, const BlockFormat &format, bool has_bias,
                 BlockMode mode, const Loops &loops)
        : shape_(shape), format_(format), has_bias_(has_bias), mode_(mode), loops_(loops) {}

    int64_t scratch_bytes(int threads) const override {
        return shared_bytes() + threads * thread_bytes();
    }

    void run(std::span<char *const> operands, int threads) const override {
        BlockTask task = task_of(operands);
        char *scratch = task.shared + shared_bytes();
        for (int64_t row = 0; row < shape_.rows; row += loops_.rows) {
            task.source = operands[0] + row * shape_.source_row;
            task.target = operands[operands.size() - 2] + row * shape_.target_row;
            task.rows = std::min(loops_.rows, shape_.rows - row);
            prepare(task, threads);
            multiply(task, scratch, threads);
        }
    }

    std::vector<Reach> reach() const override {
        const auto [rows, depth, columns, source_row, target_row] = shape_;
        std::vector<Reach> all{reach_of({rows, depth}, {source_row, kBlockFloat}, kBlockFloat)};
        append_reach(format_, columns, depth, all);
        if (has_bias_)
            all.push_back(dense(columns, kBlockFloat));
        all.push_back(reach_of({rows, columns}, {target_row, kBlockFloat}, kBlockFloat));
        return all;
    }

  private:
    BlockTask task_of(std::span<char *const> operands) const {
        size_t next = 1;
        BlockTask task{};
        task.format = format_;
        task.matrix.quants = operands[next++];
        task.matrix.scales = operands[next++];
        task.matrix.zeros = task.matrix.scales;
        if (format_.zeros != BlockZeros::kMiddle)
            task.matrix.zeros = operands[next++];
        if (has_bias_)
            task.bias = reinterpret_cast<const float *>(operands[next]);
        task.source_row = shape_.source_row;
        task.target_row = shape_.target_row;
        task.shared = operands.back();
        task.shared_row = shared_row();
        task.depth = shape_.depth;
        task.blocks = blocks_of(format_, shape_.depth);
        return task;
    }

    void prepare(const BlockTask &task, int threads) const {
        if (loops_.prepare == nullptr)
            return;
        const int64_t grain = (int64_t{1} << 15) / shape_.depth + 1;
        parallel_for(threads, task.rows, grain,
                     [&](int64_t begin, int64_t end) { loops_.prepare(task, begin, end); });
    }

    void multiply(const BlockTask &whole, char *scratch, int threads) const {
        share_columns(shape_.columns, threads, [&](int64_t thread, int64_t first, int64_t end) {
            BlockTask task = whole;
            task.scratch = scratch + thread * thread_bytes();
            task.first_column = first;
            task.column_end = end;
            loops_.multiply(task);
        });
    }

    bool is_split() const { return mode_ == BlockMode::kExact && shape_.rows > kBlockFewRows; }

    /// Bytes of a row of activations in the loop's own form. They, and all of the scratch, depend
    /// on no instruction set, so that a plan made on one processor holds on every other.
    int64_t shared_row() const {
        if (mode_ == BlockMode::kInt8)
            return int8_row_bytes(format_, shape_.depth);
        if (is_split())
            return split_row_bytes(format_, shape_.depth);
        return kBlockFloat *
               (padded_depth(format_, shape_.depth) + padded_blocks(format_, shape_.depth));
    }

    /// Returns whether there are rows enough for tiles of the matrix unit.
    bool is_tiled() const { return is_split() || shape_.rows >= kRowsOfTiles; }

    int64_t shared_bytes() const {
        const int64_t most = is_split() ? kBlockSplitRows : kBlockRows;
        const int64_t rows = is_tiled() ? block_round_up(shape_.rows, kBlockTile) : shape_.rows;
        return block_round_up(std::min(most, rows) * shared_row(), kBlockLine);
    }

    int64_t thread_bytes() const {
        const int64_t depth = padded_depth(format_, shape_.depth);
        const int64_t scales = 2 * kBlockFloat * padded_blocks(format_, shape_.depth);
        int64_t bytes = kBlockFloat * depth; // a row of weights
        if (mode_ == BlockMode::kInt8)       // scales of a vector of columns
            bytes = std::max(bytes, kBlockLine * padded_blocks(format_, shape_.depth));
        if (is_split())
            bytes = std::max(kBlockPanels, 2 * kBlockTile * (2 * depth + scales));
        else if (is_tiled())
            bytes = kBlockTile * (depth + scales);
        return block_round_up(bytes, kBlockLine);
    }

    BlockProductShape shape_;
    BlockFormat format_;
    bool has_bias_;
    BlockMode mode_;
    Loops loops_;
};

} // namespace

BlockLevel block_level() {
    static constexpr BlockLevel kNewer = BlockLevel::kAvx512, kOlder = BlockLevel::kAvx2,
                                kNone = BlockLevel::kPortable;
    const BlockLevel level = *for_this_cpu(&kNewer, &kOlder, &kNone);
    if (level != BlockLevel::kAvx512 || !has_dot_products())
        return level;
    return has_integer_tiles() && multiplies_tiles() ? BlockLevel::kAmx : BlockLevel::kVnni;
}

std::shared_ptr<const Kernel> block_product(const BlockProductShape &shape,
                                            const BlockFormat &format, bool has_bias,
                                            BlockMode mode, BlockLevel most) {
    require(std::min({shape.rows, shape.depth, shape.columns}) > 0, "a kernel multiplies nothing");
    counted({shape.rows + kBlockRows, shape.depth + format.block, kItemMax}, 1);
    counted({shape.columns + kBlockColumns, shape.depth + format.block, kItemMax}, 1);
    require(shape.source_row % kBlockFloat == 0 && shape.target_row % kBlockFloat == 0,
            "a kernel multiplies between elements");
    BlockLevel level = is_together(format) ? block_level() : BlockLevel::kPortable;
    if (shape.rows < kRowsOfTiles || block_bytes(format) % kBlockTile != 0)
        level = std::min(level, BlockLevel::kVnni);
    level = std::min(level, most);
    auto made = std::make_shared<BlockProduct>(shape, format, has_bias, mode,
                                               loops_of(mode, level, shape.rows, format));
    made->reach();
    return made;
}

} // namespace tightship::kernels
