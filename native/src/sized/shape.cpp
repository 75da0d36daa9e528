/// Operators that give elements another shape, and that compute elements from shapes and scalars.
#include "tightship/kernels/movement/generate.hpp"
#include "tightship/parallel.hpp"
#include "tightship/sized/operators.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tightship::kernels {

namespace {

using enum ElementType;

/// Axes of a node: its attribute, behind the first `skipped` settings, or its operand.
std::optional<std::vector<int64_t>> axes_of(const SizedSettings &settings, size_t skipped,
                                            Operands operands, size_t place) {
    if (const Tensor *given = operand(operands, place))
        return integers_of(*given);
    return std::vector<int64_t>(settings.integers.begin() + static_cast<int64_t>(skipped),
                                settings.integers.end());
}

bool reshape(const SizedSettings &settings, Operands operands, Results results,
             const TensorRoom &room, int) {
    const Tensor &x = *operands[0];
    auto lengths = axes_of(settings, 1, operands, 1);
    if (!lengths || lengths->size() > Tensor::kRankMax)
        return false;
    int64_t known = 1;
    size_t open = lengths->size();
    for (size_t axis = 0; axis < lengths->size(); ++axis) {
        int64_t &length = (*lengths)[axis];
        if (length == 0 && settings.integers[0] == 0) {
            if (axis >= x.rank)
                return false;
            length = x.lengths[axis];
        }
        if (length < -1 || (length == -1 && open != lengths->size()))
            return false;
        if (length == -1)
            open = axis;
        else
            known = counted({known, length});
    }
    if (open != lengths->size()) {
        if (known == 0 || x.count() % known != 0)
            return false;
        (*lengths)[open] = x.count() / known;
        known *= (*lengths)[open];
    }
    if (known != x.count())
        return false;
    results[0] = room.reshaped(x, *lengths);
    return true;
}

bool flatten(const SizedSettings &settings, Operands operands, Results results,
             const TensorRoom &room, int) {
    const Tensor &x = *operands[0];
    const auto rank = static_cast<int64_t>(x.rank);
    int64_t axis = settings.integers[0];
    if (axis < -rank || axis > rank)
        return false;
    axis += axis < 0 ? rank : 0;
    const auto split = static_cast<size_t>(axis);
    const int64_t lengths[] = {element_count(x.shape().first(split)),
                               element_count(x.shape().subspan(split))};
    results[0] = room.reshaped(x, lengths);
    return true;
}

bool squeeze(const SizedSettings &settings, Operands operands, Results results,
             const TensorRoom &room, int) {
    const Tensor &x = *operands[0];
    const auto axes = axes_of(settings, 0, operands, 1);
    if (!axes)
        return false;
    std::array<bool, Tensor::kRankMax> leaves{};
    for (size_t axis = 0; axis < x.rank && axes->empty(); ++axis)
        leaves[axis] = x.lengths[axis] == 1 && operand(operands, 1) == nullptr;
    for (const int64_t each : *axes) {
        const auto axis = axis_of(each, x.rank);
        if (!axis || x.lengths[*axis] != 1)
            return false;
        leaves[*axis] = true;
    }
    std::array<int64_t, Tensor::kRankMax> lengths;
    size_t rank = 0;
    for (size_t axis = 0; axis < x.rank; ++axis)
        if (!leaves[axis])
            lengths[rank++] = x.lengths[axis];
    results[0] = room.reshaped(x, {lengths.data(), rank});
    return true;
}

bool unsqueeze(const SizedSettings &settings, Operands operands, Results results,
               const TensorRoom &room, int) {
    const Tensor &x = *operands[0];
    const auto axes = axes_of(settings, 0, operands, 1);
    if (!axes || x.rank + axes->size() > Tensor::kRankMax)
        return false;
    const size_t rank = x.rank + axes->size();
    std::array<bool, Tensor::kRankMax> is_new{};
    for (const int64_t each : *axes) {
        const auto axis = axis_of(each, rank);
        if (!axis || is_new[*axis])
            return false;
        is_new[*axis] = true;
    }
    std::array<int64_t, Tensor::kRankMax> lengths;
    for (size_t axis = 0, source = 0; axis < rank; ++axis)
        lengths[axis] = is_new[axis] ? 1 : x.lengths[source++];
    results[0] = room.reshaped(x, {lengths.data(), rank});
    return true;
}

bool same(const SizedSettings &, Operands operands, Results results, const TensorRoom &room, int) {
    results[0] = room.reshaped(*operands[0], operands[0]->shape());
    return true;
}

/// Shape from one axis to another, counted as in a slice of Python.
bool shape(const SizedSettings &settings, Operands operands, Results results,
           const TensorRoom &room, int) {
    const Shape whole = operands[0]->shape();
    const auto rank = static_cast<int64_t>(whole.size());
    const auto place = [rank](int64_t axis) {
        return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
    };
    const int64_t start = place(settings.integers[0]);
    const int64_t lengths[] = {std::max<int64_t>(place(settings.integers[1]) - start, 0)};
    results[0] = room.make(kInt64, lengths);
    std::copy_n(whole.begin() + start, lengths[0], results[0].as<int64_t>());
    return true;
}

bool size(const SizedSettings &, Operands operands, Results results, const TensorRoom &room, int) {
    results[0] = room.make(kInt64, {});
    *results[0].as<int64_t>() = operands[0]->count();
    return true;
}

constexpr int64_t kZeroedGrainBytes = 1 << 18; ///< worth another thread

/// Fills a shape with an element: its type, and its bytes as an integer.
bool filled(const SizedSettings &settings, Operands operands, Results results,
            const TensorRoom &room, int threads) {
    const auto lengths = integers_of(*operands[0]);
    if (!lengths || operands[0]->rank > 1 || lengths->size() > Tensor::kRankMax)
        return false;
    Tensor &target = results[0];
    target = room.make(static_cast<ElementType>(settings.integers[0]), *lengths);
    const auto *bytes = reinterpret_cast<const char *>(&settings.integers[1]);
    if (settings.integers[1] == 0) {
        parallel_for(threads, target.size_bytes(), kZeroedGrainBytes,
                     [&](int64_t begin, int64_t end) {
                         std::memset(target.data + begin, 0, static_cast<size_t>(end - begin));
                     });
        return true;
    }
    const std::string element(bytes, static_cast<size_t>(target.item()));
    char *const places[] = {target.data};
    fills({{element, 0, {target.count()}, {target.item()}}})->run(places, threads);
    return true;
}

/// Counts from start by step, as long as the limit is not reached.
bool range(const SizedSettings &, Operands operands, Results results, const TensorRoom &room,
           int threads) {
    const Tensor &start = *operands[0], &limit = *operands[1], &step = *operands[2];
    for (const Tensor *each : {&start, &limit, &step})
        if (each->count() != 1 || each->type != kInt64)
            return false;
    const int64_t by = *step.as<int64_t>(), from = *start.as<int64_t>(), to = *limit.as<int64_t>();
    int64_t distance = 0;
    if (by == 0 || by == INT64_MIN || __builtin_sub_overflow(to, from, &distance))
        return false;
    const int64_t whole = distance / by, rest = distance % by != 0 && (distance < 0) == (by < 0);
    const int64_t lengths[] = {std::max<int64_t>(whole + rest, 0)};
    results[0] = room.make(kInt64, lengths);
    if (lengths[0] == 0)
        return true;
    char *const places[] = {start.data, step.data, results[0].data};
    ramp("int64", lengths[0])->run(places, threads);
    return true;
}

constexpr SizedRow kShapeRows[] = {
    {"Reshape", reshape, 1}, {"Flatten", flatten, 1},
    {"Squeeze", squeeze},    {"Unsqueeze", unsqueeze},
    {"Identity", same},      {"Shape", shape, 2},
    {"Size", size},          {"ConstantOfShape", filled, 2},
    {"Range", range},
};

} // namespace

SizedPointer sized_shape(std::string_view name, const SizedSettings &settings) {
    return sized_of(kShapeRows, name, settings);
}

} // namespace tightship::kernels
