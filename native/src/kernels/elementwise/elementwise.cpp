#include "tightship/kernels/elementwise/elementwise.hpp"

#include "tightship/kernels/block_access.hpp"

#include <algorithm>
#include <cstring>

namespace tightship::kernels {

namespace {

using enum ElementType;

/// Base of kernels on `Inputs` operands: reads and writes their rows.
template <size_t Inputs> class Elementwise : public Kernel {
  public:
    Elementwise(const ElementwiseSpec &spec, const Operation &operation,
                const std::array<Dims, Inputs + 1> &strides)
        : nest_(spec.shape, strides), operation_(operation) {
        std::copy(spec.types.begin(), spec.types.end(), types_.begin());
        const auto &steps = nest_.row_steps();
        const size_t inputs = spec.types.size() - 1;
        is_direct_ = true;
        for (size_t input = 0; input < inputs; ++input) {
            const bool is_condition = spec.name == "Where" && input == 0;
            const ElementType work = is_condition ? kBool : operation.work;
            readers_[input] = BlockReader(spec.types[input], work, steps[input]);
            is_direct_ &= readers_[input].is_direct();
        }
        writer_ = BlockWriter(operation.result, spec.types.back(), steps[Inputs]);
        is_direct_ &= writer_.is_direct();
        if (is_direct_ && nest_.row_length() * item_bytes(types_[Inputs]) >= kStreamedBytes)
            streamed_ = streamed_operation(spec.name, operation.work);
        std::copy(spec.parameters.begin(), spec.parameters.end(), parameters_);
    }

    void run(std::span<char *const> operands, int threads) const override {
        const auto streamed = is_apart(operands) ? streamed_ : nullptr;
        nest_.for_each_row(threads, [&](const auto &offsets, int64_t length) {
            std::array<const char *, Inputs> rows;
            for (size_t input = 0; input < Inputs; ++input)
                rows[input] = operands[input] + offsets[input];
            char *target = operands[Inputs] + offsets[Inputs];
            if (is_direct_)
                (streamed != nullptr && is_line(target) ? streamed : operation_.apply)(
                    operation_.code, rows.data(), target, length, parameters_);
            else
                run_blocks(rows, target, length);
        });
    }

    std::vector<Reach> reach() const override {
        std::vector<Reach> all;
        for (size_t operand = 0; operand <= Inputs; ++operand)
            all.push_back(nest_.reach(operand, item_bytes(types_[operand])));
        return all;
    }

  private:
    /// Returns whether the result lies apart from all inputs; otherwise a cache has its bytes
    /// already.
    static bool is_apart(std::span<char *const> operands) {
        const auto inputs = operands.first(Inputs);
        return std::find(inputs.begin(), inputs.end(), operands[Inputs]) == inputs.end();
    }

    /// Returns whether a line begins at `target`; not every row begins with one.
    static bool is_line(const char *target) {
        return reinterpret_cast<uintptr_t>(target) % kLineBytes == 0;
    }

    void run_blocks(const std::array<const char *, Inputs> &rows, char *target,
                    int64_t length) const {
        Block blocks[Inputs], result;
        std::array<const char *, Inputs> inputs;
        for (int64_t first = 0; first < length; first += kBlockItems) {
            const int64_t count = std::min(kBlockItems, length - first);
            for (size_t input = 0; input < Inputs; ++input)
                inputs[input] = readers_[input].read(rows[input], first, count, blocks[input]);
            char *room = writer_.room(target, first, result);
            operation_.apply(operation_.code, inputs.data(), room, count, parameters_);
            writer_.write(room, target, first, count);
        }
    }

    LoopNest<Inputs + 1> nest_;
    std::array<ElementType, Inputs + 1> types_;
    Operation operation_;
    std::array<BlockReader, Inputs> readers_;
    BlockWriter writer_;
    double parameters_[kParameters] = {};
    bool is_direct_;
    Operation::Apply streamed_ = nullptr;
};

class Cast : public Kernel {
  public:
    explicit Cast(const ElementwiseSpec &spec)
        : nest_(spec.shape, {spec.strides[0], spec.strides[1]}), from_(spec.types[0]),
          to_(spec.types[1]), reader_(from_, from_, nest_.row_steps()[0]),
          writer_(spec.types[1], spec.types[1], nest_.row_steps()[1]),
          convert_(conversion_to(spec.types[1])) {}

    void run(std::span<char *const> operands, int threads) const override {
        const bool is_direct = reader_.is_direct() && writer_.is_direct();
        nest_.for_each_row(threads, [&](const auto &offsets, int64_t length) {
            Block dense, result;
            const char *row = operands[0] + offsets[0];
            char *target = operands[1] + offsets[1];
            const int64_t piece = is_direct ? std::max<int64_t>(length, 1) : kBlockItems;
            for (int64_t first = 0; first < length; first += piece) {
                const int64_t count = std::min(piece, length - first);
                char *room = writer_.room(target, first, result);
                convert_(from_, reader_.read(row, first, count, dense), room, count);
                writer_.write(room, target, first, count);
            }
        });
    }

    std::vector<Reach> reach() const override {
        return {nest_.reach(0, item_bytes(from_)), nest_.reach(1, item_bytes(to_))};
    }

  private:
    LoopNest<2> nest_;
    ElementType from_, to_;
    BlockReader reader_;
    BlockWriter writer_;
    Convert convert_;
};

/// Binary operation folded from the left over several inputs.
class Folded : public Kernel {
  public:
    Folded(const ElementwiseSpec &spec, const Operation &operation,
           const std::array<Dims, kFoldedOperands + 1> &strides, double divisor)
        : nest_(spec.shape, strides), operation_(operation), count_(spec.types.size() - 1),
          divisor_(divisor), types_(spec.types) {
        const auto &steps = nest_.row_steps();
        for (size_t input = 0; input < count_; ++input)
            readers_[input] = BlockReader(spec.types[input], operation.work, steps[input]);
        writer_ = BlockWriter(operation.work, spec.types.back(), steps[kFoldedOperands]);
    }

    void run(std::span<char *const> operands, int threads) const override {
        nest_.for_each_row(threads, [&](const auto &offsets, int64_t length) {
            Block blocks[kFoldedOperands], sum;
            char *target = operands[count_] + offsets[kFoldedOperands];
            for (int64_t first = 0; first < length; first += kBlockItems) {
                const int64_t count = std::min(kBlockItems, length - first);
                for (size_t input = 0; input < count_; ++input) {
                    const char *pair[2] = {sum.bytes,
                                           readers_[input].read(operands[input] + offsets[input],
                                                                first, count, blocks[input])};
                    if (input == 0)
                        std::memcpy(sum.bytes, pair[1],
                                    static_cast<size_t>(count * item_bytes(operation_.work)));
                    else
                        operation_.apply(operation_.code, pair, sum.bytes, count, nullptr);
                }
                divide(sum, count);
                const int64_t bytes = count * item_bytes(operation_.work);
                char *room = writer_.room(target, first, sum);
                if (room != sum.bytes)
                    std::memcpy(room, sum.bytes, static_cast<size_t>(bytes));
                writer_.write(room, target, first, count);
            }
        });
    }

    std::vector<Reach> reach() const override {
        std::vector<Reach> all;
        for (size_t input = 0; input < count_; ++input)
            all.push_back(nest_.reach(input, item_bytes(types_[input])));
        all.push_back(nest_.reach(kFoldedOperands, item_bytes(types_[count_])));
        return all;
    }

  private:
    void divide(Block &sum, int64_t count) const {
        if (divisor_ == 1)
            return;
        if (operation_.work == kFloat32)
            for (int64_t index = 0; index < count; ++index)
                reinterpret_cast<float *>(sum.bytes)[index] /= static_cast<float>(divisor_);
        else
            for (int64_t index = 0; index < count; ++index)
                reinterpret_cast<double *>(sum.bytes)[index] /= divisor_;
    }

    LoopNest<kFoldedOperands + 1> nest_;
    Operation operation_;
    size_t count_;
    std::array<BlockReader, kFoldedOperands> readers_;
    BlockWriter writer_;
    double divisor_;
    std::vector<ElementType> types_;
};

std::optional<Operation> binary_operation(std::string_view name, ElementType type) {
    const ElementType work = work_type(type);
    if (auto found = compare_operation(name, work))
        return found;
    return is_float(work) ? binary_float_operation(name, work)
                          : binary_integer_operation(name, work);
}

template <size_t Inputs>
std::shared_ptr<const Kernel> with_inputs(const ElementwiseSpec &spec,
                                          const std::optional<Operation> &operation) {
    if (!operation)
        return nullptr;
    std::array<Dims, Inputs + 1> strides;
    std::copy(spec.strides.begin(), spec.strides.end(), strides.begin());
    return std::make_shared<Elementwise<Inputs>>(spec, *operation, strides);
}

std::shared_ptr<const Kernel> folded(const ElementwiseSpec &spec) {
    const size_t inputs = spec.types.size() - 1;
    const bool is_mean = spec.name == "Mean";
    const std::string_view name = is_mean || spec.name == "Sum" ? "Add" : spec.name;
    const auto operation = binary_operation(name, spec.types[0]);
    if (!operation || inputs > kFoldedOperands || (is_mean && !is_float(operation->work)))
        return nullptr;
    std::array<Dims, kFoldedOperands + 1> strides;
    strides.fill(Dims(spec.shape.size(), 0));
    std::copy(spec.strides.begin(), spec.strides.end() - 1, strides.begin());
    strides.back() = spec.strides.back();
    return std::make_shared<Folded>(spec, *operation, strides,
                                    is_mean ? static_cast<double>(inputs) : 1);
}

} // namespace

std::optional<Operation> dense_operation(std::string_view name,
                                         std::span<const ElementType> types) {
    const size_t inputs = types.size() - 1;
    std::optional<Operation> found;
    if (inputs == 1)
        found = unary_operation(name, types[0]);
    else if (inputs == 2)
        found = binary_operation(name, types[0]);
    else if (inputs == 3)
        found = choose_operation(name, types[1]);
    if (!found || found->result != types.back())
        return std::nullopt;
    for (size_t input = name == "Where" ? 1 : 0; input < inputs; ++input)
        if (types[input] != found->work)
            return std::nullopt;
    return found;
}

std::vector<std::string_view> elementwise_names() {
    std::vector<std::string_view> found{"Cast", "Clip", "Mean", "Not", "Sum", "Where"};
    for (const Names family :
         {unary_names(), unary_integer_names(), unary_library_names(), class_names(),
          binary_float_names(), binary_integer_names(), logic_names(), compare_names()})
        found.insert(found.end(), family.begin(), family.end());
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

std::shared_ptr<const Kernel> elementwise(const ElementwiseSpec &spec) {
    require(spec.types.size() > 1 && spec.types.size() == spec.strides.size(),
            "a kernel has other types than strides");
    require(spec.parameters.size() <= kParameters, "a kernel has too many parameters");
    const size_t inputs = spec.types.size() - 1;
    const bool is_fold = spec.name == "Mean" || spec.name == "Sum" ||
                         (inputs != 2 && (spec.name == "Min" || spec.name == "Max"));
    if (is_fold)
        return folded(spec);
    const ElementType type = spec.types[0];
    switch (inputs) {
    case 1:
        if (spec.name == "Cast")
            return std::make_shared<Cast>(spec);
        return with_inputs<1>(spec, unary_operation(spec.name, type));
    case 2:
        return with_inputs<2>(spec, binary_operation(spec.name, type));
    case 3:
        return with_inputs<3>(spec, choose_operation(spec.name, spec.types[1]));
    default:
        return nullptr;
    }
}

} // namespace tightship::kernels
