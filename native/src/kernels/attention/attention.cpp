#include "tightship/kernels/attention/attention.hpp"

#include "attention_task.hpp"
#include "cpu/this_cpu.hpp"

#include "tightship/kernels/reach.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kLengthMax = int64_t{1} << 31; ///< of queries, keys and their elements

/// Throws std::invalid_argument if loops would access memory outside of operands.
void check(const AttentionShape &shape, const AttentionRule &rule,
           const std::vector<Dims> &strides) {
    const bool masked = rule.mask != Mask::kNone;
    const size_t rank = shape.outer.size();
    for (const int64_t length : {shape.queries, shape.keys, shape.depth, shape.width})
        require(length <= kLengthMax, "a kernel attends to too much");
    require(shape.keys > 0 && shape.queries >= 0 && shape.depth >= 0 && shape.width >= 0,
            "a kernel attends to nothing");
    int64_t heads = 1;
    for (const int64_t length : shape.outer)
        heads = counted({heads, length});
    require(strides.size() == (masked ? 5 : 4), "a kernel attends under other strides");
    for (size_t operand = 0; operand < strides.size(); ++operand) {
        require(strides[operand].size() == rank + 2, "a kernel attends under other strides");
        const bool is_boolean = operand == 3 && masked && rule.mask != Mask::kAdded;
        for (const int64_t stride : strides[operand])
            require(is_boolean || stride % kFloat == 0, "a kernel attends between elements");
    }
    require(strides.back().back() == kFloat || shape.width <= 1,
            "a kernel attends into elements that do not lie together");
}

class Attention : public Kernel {
  public:
    Attention(const AttentionShape &shape, const AttentionRule &rule,
              const std::vector<Dims> &strides)
        : shape_(shape), rule_(rule), strides_(strides),
          loop_(for_this_cpu(avx512::attend, avx2::attend, portable::attend)) {
        for (const int64_t length : shape_.outer)
            heads_ *= length;
    }

    int64_t scratch_bytes(int threads) const override {
        return threads * scratch_floats() * static_cast<int64_t>(sizeof(float));
    }

    void run(std::span<char *const> operands, int threads) const override {
        const int64_t parts = parts_of(threads), tasks = heads_ * parts;
        parallel_for(threads, threads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t thread = begin; thread < end; ++thread)
                for (int64_t task = tasks * thread / threads; task < tasks * (thread + 1) / threads;
                     ++task) {
                    float *scratch = reinterpret_cast<float *>(operands.back());
                    loop_(task_of(operands, task / parts, task % parts, parts,
                                  scratch + thread * scratch_floats()));
                }
        });
    }

    std::vector<Reach> reach() const override {
        const auto [outer, queries, keys, depth, width] = shape_;
        std::vector<Reach> all{matrices(0, queries, depth), matrices(1, keys, depth),
                               matrices(2, keys, width)};
        const bool masked = rule_.mask != Mask::kNone;
        if (masked)
            all.push_back(matrices(3, queries, keys, rule_.mask == Mask::kAdded ? kFloat : 1));
        all.push_back(matrices(masked ? 4 : 3, queries, width));
        return all;
    }

  private:
    /// Returns the bytes that matrices of an operand span, one for each head.
    Reach matrices(size_t operand, int64_t rows, int64_t columns, int64_t item = kFloat) const {
        Dims shape = shape_.outer;
        shape.insert(shape.end(), {rows, columns});
        return reach_of(shape, strides_[operand], item);
    }

    int64_t scratch_floats() const {
        return attention_scratch_floats(shape_.queries, shape_.keys, shape_.depth, shape_.width);
    }

    /// Returns the number of ranges that each head's queries are cut into, so that threads get
    /// equal work.
    int64_t parts_of(int threads) const {
        const int64_t most = std::max<int64_t>(shape_.queries / kRowBlock, 1);
        for (int64_t parts = 1; parts < std::min<int64_t>(most, threads); ++parts)
            if (heads_ * parts % threads == 0 || heads_ * parts >= 4 * threads)
                return parts;
        return std::min<int64_t>(most, threads);
    }

    char *at(std::span<char *const> operands, size_t operand, int64_t head, int64_t row) const {
        const Dims &strides = strides_[operand];
        int64_t offset = row * strides[shape_.outer.size()];
        for (size_t axis = shape_.outer.size(); axis-- > 0; head /= shape_.outer[axis])
            offset += head % shape_.outer[axis] * strides[axis];
        return operands[operand] + offset;
    }

    Matrix matrix(std::span<char *const> operands, size_t operand, int64_t head,
                  int64_t row) const {
        const int64_t *last = strides_[operand].data() + shape_.outer.size();
        return {reinterpret_cast<const float *>(at(operands, operand, head, row)), last[0] / 4,
                last[1] / 4};
    }

    AttentionTask task_of(std::span<char *const> operands, int64_t head, int64_t part,
                          int64_t parts, float *scratch) const {
        const int64_t first = shape_.queries * part / parts;
        const bool masked = rule_.mask != Mask::kNone;
        const size_t rank = shape_.outer.size(), target = masked ? 4 : 3;
        AttentionTask task{};
        task.query = matrix(operands, 0, head, first);
        task.key = matrix(operands, 1, head, 0);
        task.value = matrix(operands, 2, head, 0);
        if (masked) {
            task.mask = at(operands, 3, head, first);
            task.mask_row = strides_[3][rank];
            task.mask_column = strides_[3][rank + 1];
        }
        task.mask_kind = rule_.mask;
        task.target = reinterpret_cast<float *>(at(operands, target, head, first));
        task.target_row = strides_[target][rank] / 4;
        task.first_query = first;
        task.queries = shape_.queries * (part + 1) / parts - first;
        task.keys = shape_.keys;
        task.depth = shape_.depth;
        task.width = shape_.width;
        task.scale = rule_.scale;
        task.fill = rule_.fill;
        task.ahead = rule_.ahead;
        task.zero_if_undefined = rule_.zero_if_undefined;
        task.zero_if_unseen = rule_.zero_if_unseen;
        task.scratch = scratch;
        return task;
    }

    AttentionShape shape_;
    AttentionRule rule_;
    std::vector<Dims> strides_;
    AttentionLoop loop_;
    int64_t heads_ = 1;
};

} // namespace

std::shared_ptr<const Kernel> attention(const AttentionShape &shape, const AttentionRule &rule,
                                        const std::vector<Dims> &strides) {
    check(shape, rule, strides);
    auto kernel = std::make_shared<Attention>(shape, rule, strides);
    kernel->reach();
    return kernel;
}

} // namespace tightship::kernels
