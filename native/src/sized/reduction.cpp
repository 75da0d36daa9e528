/// Reductions of axes, and operators on the order of elements along one.
#include "tightship/kernels/reduction/reduction.hpp"
#include "tightship/sized/operators.hpp"

#include "tightship/kernels/reduction/ranks.hpp"
#include "tightship/kernels/reduction/rows.hpp"

#include <string>

namespace tightship::kernels {

namespace {

using enum ElementType;

/// Reduction; settings: whether reduced axes are kept, whether none are reduced if none are given,
/// and axes unless an operand has them.
class Reduction : public SizedOperator {
  public:
    Reduction(std::string_view name, SizedSettings settings)
        : name_(name), settings_(std::move(settings)) {}

    bool run(Operands operands, Results results, const TensorRoom &room,
             int threads) const override {
        const Tensor &x = *operands[0];
        std::vector<int64_t> axes(settings_.integers.begin() + 2, settings_.integers.end());
        if (const Tensor *given = operand(operands, 1)) {
            auto numbers = integers_of(*given);
            if (!numbers)
                return false;
            axes = std::move(*numbers);
        }
        if (x.type == kBool || (axes.empty() && settings_.integers[1] != 0))
            return false;
        std::array<bool, Tensor::kRankMax> leaves;
        leaves.fill(axes.empty());
        for (const int64_t each : axes) {
            const auto axis = axis_of(each, x.rank);
            if (!axis)
                return false;
            leaves[*axis] = true;
        }
        return computed(x, leaves, results, room, threads);
    }

  private:
    bool computed(const Tensor &x, const std::array<bool, Tensor::kRankMax> &leaves,
                  Results results, const TensorRoom &room, int threads) const {
        ReductionSpec spec{name_, x.type, {}, {}, {}, {}, {}};
        Dims shape;
        const Dims strides = x.strides();
        for (size_t axis = 0; axis < x.rank; ++axis) {
            const int64_t length = x.lengths[axis];
            (leaves[axis] ? spec.reduced_shape : spec.kept_shape).push_back(length);
            (leaves[axis] ? spec.reduced_source : spec.kept_source).push_back(strides[axis]);
            if (!leaves[axis] || settings_.integers[0] != 0)
                shape.push_back(leaves[axis] ? 1 : length);
        }
        results[0] = room.make(x.type, shape);
        if (results[0].count() == 0)
            return true;
        if (x.count() == 0)
            return false;
        int64_t step = x.item();
        spec.kept_target.resize(spec.kept_shape.size());
        for (size_t axis = spec.kept_shape.size(); axis-- > 0;) {
            spec.kept_target[axis] = step;
            step *= spec.kept_shape[axis];
        }
        const auto kernel = reduction(spec);
        if (kernel == nullptr)
            return false;
        char *const places[] = {x.data, results[0].data};
        kernel->run(places, threads);
        return true;
    }

    std::string name_;
    SizedSettings settings_;
};

std::optional<Line> line_of(const Tensor &x, int64_t given) {
    const auto axis = axis_of(given, x.rank);
    if (!axis)
        return std::nullopt;
    return Line{element_count(x.shape().first(*axis)), x.lengths[*axis],
                element_count(x.shape().subspan(*axis + 1))};
}

/// Runs a kernel on one operand and the results, with the scratch that it asks for.
bool run_kernel(const std::shared_ptr<const Kernel> &kernel, const Tensor &x, Results results,
                const TensorRoom &room, int threads) {
    if (kernel == nullptr)
        return false;
    std::vector<char *> places{x.data};
    for (const Tensor &each : results)
        places.push_back(each.data);
    const int64_t scratch_bytes = kernel->scratch_bytes(threads);
    std::shared_ptr<const void> held;
    if (scratch_bytes > 0) {
        auto [scratch, owner] = room.scratch(scratch_bytes);
        held = std::move(owner);
        places.push_back(scratch);
    }
    kernel->run(places, threads);
    return true;
}

/// Softmax along one axis, or its logarithm if the second setting is not 0.
bool softmax_of(const SizedSettings &settings, Operands operands, Results results,
                const TensorRoom &room, int threads) {
    const Tensor &x = *operands[0];
    const auto line = line_of(x, settings.integers[0]);
    if (!line)
        return false;
    results[0] = room.make(x.type, x.shape());
    return x.count() == 0 || run_kernel(softmax(x.type, line->before, line->along, line->after,
                                                settings.integers[1] != 0),
                                        x, results, room, threads);
}

/// ArgMax or ArgMin; settings: axis, whether the axis is kept, the largest is sought, and the last
/// of equal ones is taken.
bool position_of(const SizedSettings &settings, Operands operands, Results results,
                 const TensorRoom &room, int threads) {
    const Tensor &x = *operands[0];
    const auto line = line_of(x, settings.integers[0]);
    if (!line || line->along == 0)
        return false;
    const size_t axis = *axis_of(settings.integers[0], x.rank);
    Dims shape(x.shape().begin(), x.shape().end());
    shape[axis] = 1;
    if (settings.integers[1] == 0)
        shape.erase(shape.begin() + static_cast<int64_t>(axis));
    results[0] = room.make(kInt64, shape);
    return results[0].count() == 0 ||
           run_kernel(position(x.type, *line, settings.integers[2] != 0, settings.integers[3] != 0),
                      x, results, room, threads);
}

/// TopK with both results; settings: axis, whether the largest are sought.
bool top(const SizedSettings &settings, Operands operands, Results results, const TensorRoom &room,
         int threads) {
    const Tensor &x = *operands[0];
    const auto line = line_of(x, settings.integers[0]);
    const auto count = integers_of(*operands[1]);
    if (!line || !count || count->size() != 1 || count->front() < 0 ||
        count->front() > line->along || results.size() != 2)
        return false;
    Dims shape(x.shape().begin(), x.shape().end());
    shape[*axis_of(settings.integers[0], x.rank)] = count->front();
    results[0] = room.make(x.type, shape);
    results[1] = room.make(kInt64, shape);
    return results[0].count() == 0 ||
           run_kernel(best(x.type, *line, count->front(), settings.integers[1] != 0), x, results,
                      room, threads);
}

constexpr SizedRow kReductionRows[] = {
    {"Softmax", softmax_of, 2}, {"Position", position_of, 4}, {"TopK", top, 2}};

} // namespace

SizedPointer sized_reduction(std::string_view name, const SizedSettings &settings) {
    if (!name.starts_with("Reduce"))
        return sized_of(kReductionRows, name, settings);
    require(settings.integers.size() >= 2, "an operator lacks settings");
    return std::make_shared<Reduction>(name, settings);
}

} // namespace tightship::kernels
