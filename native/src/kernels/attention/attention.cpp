#include "tightship/kernels/attention/attention.hpp"

#include "attention_task.hpp"
#include "cpu/this_cpu.hpp"

#include "tightship/kernels/item.hpp"
#include "tightship/kernels/reach.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kLengthMax = int64_t{1} << 31; ///< of queries, keys and their elements
constexpr int64_t kSplitsMax = 64;         ///< of keys; of all heads together, if they are few
constexpr int64_t kMergedFloats = 1 << 14; ///< that pay for a thread

/// Indices of operands; those that are left out have none.
struct Places {
    size_t mask, lengths, sinks, target;

    explicit Places(const AttentionRule &rule)
        : mask(3), lengths(mask + (rule.mask != Mask::kNone)), sinks(lengths + rule.counted),
          target(sinks + rule.sinks) {}
};

/// Returns the type of an operand's rows.
RowType rows_type(const AttentionShape &shape, size_t operand) {
    return operand == 1 ? shape.key_type : operand == 2 ? shape.value_type : RowType::kFloat32;
}

int64_t operand_item(const AttentionShape &shape, size_t operand) {
    return element_bytes(rows_type(shape, operand));
}

/// Throws std::invalid_argument if loops would access memory outside of operands.
void check(const AttentionShape &shape, const AttentionRule &rule,
           const std::vector<Dims> &strides) {
    const size_t rank = shape.outer.size();
    const Places places(rule);
    for (const int64_t length : {shape.queries, shape.keys, shape.depth, shape.width})
        require(length <= kLengthMax, "a kernel attends to too much");
    require(shape.keys > 0 && shape.queries >= 0 && shape.depth >= 0 && shape.width >= 0,
            "a kernel attends to nothing");
    for (const int64_t distance : {rule.ahead, rule.behind, rule.first})
        require(distance >= -kLengthMax && distance <= kLengthMax, "a kernel attends too far away");
    int64_t heads = 1;
    for (const int64_t length : shape.outer)
        heads = counted({heads, length});
    require(strides.size() == places.target + 1, "a kernel attends under other strides");
    for (size_t operand = 0; operand < strides.size(); ++operand) {
        const bool by_head = operand >= places.lengths && operand < places.target;
        require(strides[operand].size() == rank + (by_head ? 0 : 2),
                "a kernel attends under other strides");
        const bool of_bytes = operand >= places.mask && operand < places.lengths
                                  ? rule.mask != Mask::kAdded
                                  : by_head && operand < places.sinks;
        const int64_t item = of_bytes ? 1 : operand_item(shape, operand);
        for (const int64_t stride : strides[operand])
            require(stride % item == 0, "a kernel attends between elements");
    }
    for (const size_t operand : {size_t{1}, size_t{2}})
        require(rows_type(shape, operand) != RowType::kInt8 || strides[operand].back() == 1,
                "a kernel attends to rows that do not lie together");
    require(strides.back().back() == kFloat || shape.width <= 1,
            "a kernel attends into elements that do not lie together");
}

const AttentionLoops &loops_up_to(AttentionLevel most) {
    const AttentionLoops *const oldest = &portable::attention_loops;
    const AttentionLoops *const older =
        most >= AttentionLevel::kAvx2 ? &avx2::attention_loops : oldest;
    const AttentionLoops *const newest =
        most >= AttentionLevel::kAvx512 ? &avx512::attention_loops : older;
    return *for_this_cpu(newest, older, oldest);
}

class Attention : public Kernel {
  public:
    Attention(const std::string &node, const AttentionShape &shape, const AttentionRule &rule,
              const std::vector<Dims> &strides, AttentionLevel level)
        : node_(node), shape_(shape), rule_(rule), strides_(strides), places_(rule),
          loops_(loops_up_to(level)) {
        for (const int64_t length : shape_.outer)
            heads_ *= length;
        group_ = shared_heads();
        rows_ = shape_.queries * group_;
        is_few_ = rows_ <= kRowBlock && (rows_ <= kFewRows || shape_.queries < kPackedQueries) &&
                  (strides_[1].back() == operand_item(shape_, 1) || shape_.depth <= 1);
        if (!is_few_)
            group_ = 1;
        const int64_t most =
            std::clamp<int64_t>(kSplitsMax * group_ / std::max<int64_t>(heads_, 1), 1, kSplitsMax);
        splits_ = rule_.counted ? most : std::min(most, blocks(shape_.keys));
        block_ = rule_.counted ? kKeyBlock
                 : is_few_     ? std::min(kKeyBlock, panels(shape_.keys))
                               : even_block(shape_.keys);
    }

    int64_t scratch_bytes(int threads) const override {
        const int64_t shared = is_few_ ? heads_ / group_ * splits_ * partial_size() : 0;
        return (shared + threads * scratch_floats()) * kFloat;
    }

    void run(std::span<char *const> operands, int threads) const override {
        for (int64_t head = 0; rule_.counted && head < heads_; ++head)
            check_length(keys_of(operands, head));
        if (is_few_)
            return run_few(operands, threads);
        const int64_t parts = parts_of(threads), tasks = heads_ * parts;
        parallel_for(threads, threads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t thread = begin; thread < end; ++thread)
                for (int64_t task = tasks * thread / threads; task < tasks * (thread + 1) / threads;
                     ++task) {
                    float *scratch = reinterpret_cast<float *>(operands.back());
                    const int64_t part = task % parts, first = shape_.queries * part / parts;
                    AttentionTask given =
                        task_of(operands, task / parts, first, scratch + thread * scratch_floats());
                    given.queries = shape_.queries * (part + 1) / parts - first;
                    if (given.queries > 0)
                        loops_.attend(given);
                }
        });
    }

    std::vector<Reach> reach() const override {
        const auto &[outer, queries, keys, depth, width, key_type, value_type] = shape_;
        std::vector<Reach> all{
            matrices(0, queries, depth),
            matrices(1, keys, stored_width(key_type, depth), element_bytes(key_type)),
            matrices(2, keys, stored_width(value_type, width), element_bytes(value_type))};
        if (rule_.mask != Mask::kNone)
            all.push_back(matrices(3, queries, keys, rule_.mask == Mask::kAdded ? kFloat : 1));
        if (rule_.counted)
            all.push_back(reach_of(outer, strides_[places_.lengths], sizeof(int64_t)));
        if (rule_.sinks)
            all.push_back(reach_of(outer, strides_[places_.sinks], kFloat));
        all.push_back(matrices(places_.target, queries, width));
        return all;
    }

  private:
    /// Range of keys that the queries of a head see, cut into splits of `length`.
    struct Range {
        int64_t first, end, length;

        int64_t splits() const { return end <= first ? 1 : (end - first + length - 1) / length; }

        /// Returns first and end of the keys of a split; they are equal beyond the last one.
        std::pair<int64_t, int64_t> split(int64_t index) const {
            const int64_t from = std::min(first + index * length, std::max(first, end));
            return {from, std::max(from, std::min(end, from + length))};
        }
    };

    static int64_t blocks(int64_t keys) { return (keys + kKeyBlock - 1) / kKeyBlock; }

    /// Returns how many consecutive heads, few enough to be computed together, share keys.
    int64_t shared_heads() const {
        if (shape_.outer.empty() || shape_.outer.back() < 1)
            return 1;
        const size_t axis = shape_.outer.size() - 1;
        const int64_t group = shape_.outer.back();
        const bool is_shared = strides_[1][axis] == 0 && strides_[2][axis] == 0 &&
                               (!rule_.counted || strides_[places_.lengths][axis] == 0);
        return is_shared && group <= kRowBlock && shape_.queries * group <= kRowBlock ? group : 1;
    }

    void run_few(std::span<char *const> operands, int threads) const {
        const int64_t heads = heads_ / group_;
        float *const partials = reinterpret_cast<float *>(operands.back());
        float *const scratch = partials + heads * splits_ * partial_size();
        int64_t splits = 1;
        for (int64_t head = 0; head < heads; ++head)
            splits = std::max(splits, range_of(operands, head).splits());
        const auto partial = [&](int64_t head, int64_t split) {
            return partial_at(partials + (head * splits_ + split) * partial_size(), rows_,
                              shape_.width);
        };
        const int64_t tasks = heads * splits;
        parallel_for(threads, threads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t thread = begin; thread < end; ++thread)
                for (int64_t task = tasks * thread / threads; task < tasks * (thread + 1) / threads;
                     ++task) {
                    const int64_t head = task / splits, split = task % splits;
                    AttentionTask given =
                        task_of(operands, head * group_, 0, scratch + thread * scratch_floats());
                    if (task + 1 < tasks * (thread + 1) / threads && splits == 1)
                        fetch_later(operands, head + 1, given);
                    const auto [first, end] = range_of(operands, head).split(split);
                    loops_.attend_few(given, first, end, partial(head, split));
                }
        });
        const int64_t floats = std::max<int64_t>(rows_ * splits * shape_.width, 1);
        parallel_for(threads, heads, kMergedFloats / floats, [&](int64_t begin, int64_t end) {
            for (int64_t head = begin; head < end; ++head)
                loops_.merge(task_of(operands, head * group_, 0, nullptr), partial(head, 0),
                             splits);
        });
    }

    /// Lets a task fetch keys of the head that its thread takes next.
    void fetch_later(std::span<char *const> operands, int64_t head, AttentionTask &task) const {
        const auto [first, end] = range_of(operands, head).split(0);
        task.next = at(operands, 1, head * group_, first);
        task.next_count = std::min(end - first, block_);
    }

    Range range_of(std::span<char *const> operands, int64_t head) const {
        const AttentionTask task = task_of(operands, head * group_, 0, nullptr);
        const int64_t first = std::max<int64_t>(task.lower, 0) / kKeyBlock * kKeyBlock;
        const int64_t end = std::min(task.keys, task.upper + shape_.queries);
        const int64_t each = (blocks(std::max<int64_t>(end - first, 1)) + splits_ - 1) / splits_;
        return {first, end, each * kKeyBlock};
    }

    void check_length(int64_t length) const {
        const int64_t least = rule_.zero_if_undefined || rule_.zero_if_unseen ? 0 : 1;
        if (length < least || length > shape_.keys)
            throw KernelError("Node `" + node_ + "` attends to " + std::to_string(length) +
                              " keys; there must be at least " + std::to_string(least) +
                              " and at most " + std::to_string(shape_.keys) + ".");
    }

    int64_t keys_of(std::span<char *const> operands, int64_t head) const {
        return rule_.counted ? load<int64_t>(at_head(operands, places_.lengths, head))
                             : shape_.keys;
    }

    /// Returns the bytes that matrices of an operand span, one for each head.
    Reach matrices(size_t operand, int64_t rows, int64_t columns, int64_t item = kFloat) const {
        Dims shape = shape_.outer;
        shape.insert(shape.end(), {rows, columns});
        return reach_of(shape, strides_[operand], item);
    }

    int64_t partial_size() const { return partial_floats(rows_, shape_.width); }

    /// Returns whether few rows read their values from a copy: they do not lie in whole vectors.
    bool packs_few_values() const {
        constexpr int64_t kFloatsMost = 16; // of a vector, of any instruction set
        return strides_[2].back() != operand_item(shape_, 2) || shape_.width % kFloatsMost != 0;
    }

    int64_t scratch_floats() const {
        return is_few_
                   ? few_scratch_floats(rows_, block_, shape_.depth, packs_few_values())
                   : attention_scratch_floats(shape_.queries, block_, shape_.depth, shape_.width,
                                              shape_.key_type != RowType::kFloat32 ||
                                                  shape_.value_type != RowType::kFloat32);
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

    char *at_head(std::span<char *const> operands, size_t operand, int64_t head) const {
        int64_t offset = 0;
        for (size_t axis = shape_.outer.size(); axis-- > 0; head /= shape_.outer[axis])
            offset += head % shape_.outer[axis] * strides_[operand][axis];
        return operands[operand] + offset;
    }

    char *at(std::span<char *const> operands, size_t operand, int64_t head, int64_t row) const {
        return at_head(operands, operand, head) + row * strides_[operand][shape_.outer.size()];
    }

    /// Returns the bytes from one of the heads that share keys to the next.
    int64_t between_heads(size_t operand) const {
        return group_ == 1 ? 0 : strides_[operand][shape_.outer.size() - 1];
    }

    Matrix matrix(std::span<char *const> operands, size_t operand, int64_t head,
                  int64_t row) const {
        const int64_t *last = strides_[operand].data() + shape_.outer.size();
        return {reinterpret_cast<const float *>(at(operands, operand, head, row)), last[0] / kFloat,
                last[1] / kFloat};
    }

    Rows rows(std::span<char *const> operands, size_t operand, int64_t head) const {
        const int64_t *last = strides_[operand].data() + shape_.outer.size();
        return {at_head(operands, operand, head), last[0], last[1], rows_type(shape_, operand)};
    }

    /// Describes a head, and those that share its keys, from a query on.
    AttentionTask task_of(std::span<char *const> operands, int64_t head, int64_t first,
                          float *scratch) const {
        const size_t rank = shape_.outer.size(), target = places_.target;
        AttentionTask task{};
        task.query = matrix(operands, 0, head, first);
        task.key = rows(operands, 1, head);
        task.value = rows(operands, 2, head);
        if (rule_.mask != Mask::kNone) {
            task.mask = at(operands, places_.mask, head, first);
            task.mask_row = strides_[places_.mask][rank];
            task.mask_column = strides_[places_.mask][rank + 1];
            task.mask_group = between_heads(places_.mask);
        }
        task.mask_kind = rule_.mask;
        task.target = reinterpret_cast<float *>(at(operands, target, head, first));
        task.target_row = strides_[target][rank] / kFloat;
        task.group = group_;
        task.query_group = between_heads(0) / kFloat;
        task.target_group = between_heads(target) / kFloat;
        task.queries = shape_.queries - first;
        task.keys = keys_of(operands, head);
        task.depth = shape_.depth;
        task.width = shape_.width;
        task.block = block_;
        const int64_t position = (rule_.counted ? task.keys - shape_.queries : rule_.first) + first;
        task.lower = rule_.behind < 0 ? -kFarKey : position - rule_.behind;
        task.upper = rule_.ahead < 0 ? kFarKey : position + rule_.ahead;
        task.scale = rule_.scale;
        task.cap = rule_.cap;
        task.fill = rule_.fill;
        if (rule_.sinks) {
            task.sink = reinterpret_cast<const float *>(at_head(operands, places_.sinks, head));
            task.sink_group = between_heads(places_.sinks) / kFloat;
        }
        task.zero_if_undefined = rule_.zero_if_undefined;
        task.zero_if_unseen = rule_.zero_if_unseen;
        task.scratch = scratch;
        return task;
    }

    std::string node_;
    AttentionShape shape_;
    AttentionRule rule_;
    std::vector<Dims> strides_;
    Places places_;
    const AttentionLoops &loops_;
    int64_t heads_ = 1;
    int64_t group_ = 1; ///< heads that share keys and are computed together
    int64_t rows_ = 0;  ///< queries that are computed together, if they are few
    int64_t splits_ = 1;
    int64_t block_ = 0;
    bool is_few_ = false;
};

} // namespace

std::shared_ptr<const Kernel> attention(const std::string &node, const AttentionShape &shape,
                                        const AttentionRule &rule, const std::vector<Dims> &strides,
                                        AttentionLevel most) {
    check(shape, rule, strides);
    auto kernel = std::make_shared<Attention>(node, shape, rule, strides, most);
    kernel->reach();
    return kernel;
}

} // namespace tightship::kernels
