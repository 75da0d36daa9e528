#include "tightship/kernels/elementwise/elementwise.hpp"
#include "tightship/kernels/item.hpp"
#include "tightship/sized/operators.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

using enum ElementType;

/// Operators whose result is a bool whatever their operands are.
constexpr std::string_view kTests[] = {"And",   "Equal",       "Greater",       "GreaterOrEqual",
                                       "IsInf", "IsNaN",       "IsNegativeInf", "IsPositiveInf",
                                       "Less",  "LessOrEqual", "Not",           "Or",
                                       "Xor"};
constexpr ElementType kMoved[] = {kUint8, kUint16, kUint32, kUint32, kUint64};

/// Type of the same size whose elements a choice moves.
ElementType moved(ElementType type) {
    return kMoved[item_bytes(type) / 2];
}

/// Shape to which operands broadcast, if they do.
bool broadcast(Operands operands, Tensor &result) {
    std::array<int64_t, Tensor::kRankMax> lengths;
    size_t rank = 0;
    for (const Tensor *each : operands)
        rank = std::max<size_t>(rank, each->rank);
    lengths.fill(1);
    for (const Tensor *each : operands)
        for (size_t axis = 0; axis < each->rank; ++axis) {
            int64_t &length = lengths[rank - each->rank + axis];
            if (length == 1)
                length = each->lengths[axis];
            else if (each->lengths[axis] != 1 && each->lengths[axis] != length)
                return false;
        }
    result.reshape({lengths.data(), rank});
    return true;
}

/// Strides of an operand under the shape of the result: 0 along axes that it repeats.
Dims broadcast_strides(const Tensor &source, const Tensor &result) {
    Dims strides(result.rank, 0);
    int64_t step = source.item();
    for (size_t axis = source.rank; axis-- > 0;) {
        if (source.lengths[axis] != 1)
            strides[result.rank - source.rank + axis] = step;
        step *= source.lengths[axis];
    }
    return strides;
}

class Elementwise : public SizedOperator {
  public:
    Elementwise(std::string_view name, std::vector<double> parameters)
        : name_(name), parameters_(std::move(parameters)),
          is_test_(std::ranges::find(kTests, name) != std::end(kTests)),
          is_choice_(name == "Where") {
        parameters_.resize(kParameters);
        find_dense();
    }

    bool run(Operands operands, Results results, const TensorRoom &room,
             int threads) const override {
        if (operands.empty() || results.size() != 1 || std::ranges::count(operands, nullptr) > 0)
            return false;
        ElementwiseSpec spec{name_, {}, {}, {}, parameters_};
        const ElementType type = operands[is_choice_ ? 1 : 0]->type;
        for (size_t index = is_choice_ ? 1 : 0; index < operands.size(); ++index)
            if (operands[index]->type != type)
                return false;
        if (is_choice_ && (operands.size() != 3 || operands[0]->type != kBool))
            return false;
        Tensor shape;
        if (!broadcast(operands, shape))
            return false;
        results[0] = make(operands, is_test_ ? kBool : type, shape.shape(), room);
        if (results[0].count() == 0 || is_dense(operands, results[0]))
            return true;
        return computed(spec, operands, results[0], threads);
    }

  private:
    /// Makes a result, over an operand if that is spare. Only for floats, whose kernels do not fail
    /// when they have overwritten elements.
    static Tensor make(Operands operands, ElementType type, Shape shape, const TensorRoom &room) {
        for (const Tensor *each : operands)
            if (each->is_spare && type == kFloat32 && each->type == type &&
                std::ranges::equal(each->shape(), shape))
                return room.make_like(*each);
        return room.make(type, shape);
    }

    /// Computes few elements at once if each operand has one for each, or one for all.
    bool is_dense(Operands operands, Tensor &result) const {
        const int64_t count = result.count(), inputs = static_cast<int64_t>(operands.size());
        if (count > kFew || inputs > 3)
            return false;
        const Operation *const operation = dense(operands[is_choice_ ? 1 : 0]->type, inputs);
        if (operation == nullptr)
            return false;
        char rooms[3][kFew * 8];
        const char *places[3];
        for (size_t index = 0; index < operands.size(); ++index) {
            const Tensor &each = *operands[index];
            places[index] = each.data;
            if (each.count() == count)
                continue;
            if (each.count() != 1)
                return false;
            repeat(each, count, rooms[index]);
            places[index] = rooms[index];
        }
        operation->apply(operation->code, places, result.data, count, parameters_.data());
        return true;
    }

    static void repeat(const Tensor &one, int64_t count, char *room) {
        with_item(one.item(), [&](auto item) {
            item = load<decltype(item)>(one.data);
            for (int64_t index = 0; index < count; ++index)
                store(room + index * int64_t{sizeof item}, item);
        });
    }

    const Operation *dense(ElementType type, int64_t inputs) const {
        const auto &found = dense_[static_cast<size_t>(inputs) - 1][static_cast<size_t>(type)];
        return found ? &*found : nullptr;
    }

    void find_dense() {
        for (int number = 0; number < kElementTypes; ++number)
            for (size_t inputs = 1; inputs <= 3; ++inputs) {
                const auto own = static_cast<ElementType>(number);
                std::vector<ElementType> types(inputs, is_choice_ ? moved(own) : own);
                types.push_back(is_test_ ? kBool : types.back());
                if (is_choice_)
                    types[0] = kBool;
                dense_[inputs - 1][static_cast<size_t>(number)] = dense_operation(name_, types);
            }
    }

    bool computed(ElementwiseSpec &spec, Operands operands, Tensor &result, int threads) const {
        std::array<char *, kFoldedOperands + 1> places;
        if (operands.size() > kFoldedOperands)
            return false;
        spec.shape.assign(result.shape().begin(), result.shape().end());
        for (size_t index = 0; index < operands.size(); ++index) {
            const ElementType own = operands[index]->type;
            spec.types.push_back(is_choice_ && index > 0 ? moved(own) : own);
            spec.strides.push_back(broadcast_strides(*operands[index], result));
            places[index] = operands[index]->data;
        }
        spec.types.push_back(is_choice_ ? moved(result.type) : result.type);
        spec.strides.push_back(result.strides());
        const auto kernel = elementwise(spec);
        if (kernel == nullptr)
            return false;
        places[operands.size()] = result.data;
        kernel->run({places.data(), operands.size() + 1}, threads);
        return true;
    }

    static constexpr int64_t kFew = 512; ///< elements, for which a loop over shapes is not made

    std::string name_;
    std::vector<double> parameters_;
    bool is_test_, is_choice_;
    /// Functions on dense rows by the number of inputs less one, and the type.
    std::array<std::array<std::optional<Operation>, kElementTypes>, 3> dense_;
};

/// Cast to the type that the first setting numbers.
bool cast(const SizedSettings &settings, Operands operands, Results results, const TensorRoom &room,
          int threads) {
    const auto type = static_cast<ElementType>(settings.integers[0]);
    results[0] = room.make(type, operands[0]->shape());
    const int64_t count = results[0].count();
    if (count == 0)
        return true;
    const auto kernel = elementwise({"Cast",
                                     {operands[0]->type, type},
                                     {count},
                                     {{operands[0]->item()}, {results[0].item()}},
                                     {}});
    char *const places[] = {operands[0]->data, results[0].data};
    kernel->run(places, threads);
    return true;
}

/// Clip by scalars, either of which may be left out.
bool clip(const SizedSettings &, Operands operands, Results results, const TensorRoom &room,
          int threads) {
    const Tensor *const low = operand(operands, 1), *const high = operand(operands, 2);
    const Tensor *present[3] = {operands[0]};
    size_t count = 1;
    for (const Tensor *limit : {low, high})
        if (limit != nullptr) {
            if (limit->count() != 1)
                return false;
            present[count++] = limit;
        }
    if (count == 1) {
        results[0] = room.reshaped(*operands[0], operands[0]->shape());
        return true;
    }
    Tensor scalars[2];
    for (size_t index = 1; index < count; ++index) {
        scalars[index - 1] = *present[index];
        scalars[index - 1].rank = 0;
        present[index] = &scalars[index - 1];
    }
    static const Elementwise both("Clip", {}), least("Max", {}), most("Min", {});
    const Elementwise &made = count == 3 ? both : low != nullptr ? least : most;
    return made.run({present, count}, results, room, threads);
}

constexpr SizedRow kElementwiseRows[] = {{"Cast", cast, 1}, {"Clip", clip}};

} // namespace

SizedPointer sized_elementwise(std::string_view name, const SizedSettings &settings) {
    if (auto made = sized_of(kElementwiseRows, name, settings))
        return made;
    if (std::ranges::count(elementwise_names(), name) == 0)
        return nullptr;
    return std::make_shared<Elementwise>(name, settings.numbers);
}

} // namespace tightship::kernels
