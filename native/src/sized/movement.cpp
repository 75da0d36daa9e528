/// Operators that copy elements to other positions.
#include "tightship/kernels/movement/strided_copy.hpp"
#include "tightship/sized/operators.hpp"

#include <algorithm>
#include <cstring>

namespace tightship::kernels {

namespace {

bool transpose(const SizedSettings &settings, Operands operands, Results results,
               const TensorRoom &room, int threads) {
    const Tensor &x = *operands[0];
    const size_t rank = x.rank;
    if (!settings.integers.empty() && settings.integers.size() != rank)
        return false;
    Dims lengths(rank), strides(rank);
    const Dims own = x.strides();
    for (size_t place = 0; place < rank; ++place) {
        const auto axis = axis_of(settings.integers.empty() ? static_cast<int64_t>(rank - 1 - place)
                                                            : settings.integers[place],
                                  rank);
        if (!axis)
            return false;
        lengths[place] = x.lengths[*axis];
        strides[place] = own[*axis];
    }
    results[0] = room.make(x.type, lengths);
    if (results[0].count() > 0)
        StridedCopy(x.item(), lengths, strides, results[0].strides())
            .run(x.data, results[0].data, threads);
    return true;
}

/// Copies a box of `x` that begins at a byte and has strides of its own.
void copy_box(const Tensor &x, int64_t start, const Dims &strides, const Tensor &target,
              int threads) {
    const Shape shape = target.shape();
    bool is_dense = true;
    const Dims dense = target.strides();
    for (size_t axis = 0; axis < shape.size(); ++axis)
        is_dense &= shape[axis] == 1 || strides[axis] == dense[axis];
    if (is_dense)
        std::memcpy(target.data, x.data + start, static_cast<size_t>(target.size_bytes()));
    else
        StridedCopy(x.item(), {shape.begin(), shape.end()}, strides, dense)
            .run(x.data + start, target.data, threads);
}

/// Copies an interval of one axis, in the order of its elements.
void copy_interval(const Tensor &x, size_t axis, int64_t start, const Tensor &target) {
    const int64_t inner = element_count(x.shape().subspan(axis + 1)) * x.item();
    const int64_t outer = element_count(x.shape().first(axis));
    const int64_t step = x.lengths[axis] * inner, row = target.lengths[axis] * inner;
    const char *from = x.data + start * inner;
    for (int64_t part = 0; part < outer; ++part, from += step)
        std::memcpy(target.data + part * row, from, static_cast<size_t>(row));
}

/// Intervals of so many parts that a copy by threads is not worth its setup.
constexpr int64_t kFewParts = 1 << 8;

/// Slice by operands: starts, ends, axes, steps.
bool slice(const SizedSettings &, Operands operands, Results results, const TensorRoom &room,
           int threads) {
    const Tensor &x = *operands[0];
    std::vector<int64_t> given[4];
    for (size_t place = 1; place < 5; ++place)
        if (const Tensor *each = operand(operands, place)) {
            auto numbers = integers_of(*each);
            if (!numbers)
                return false;
            given[place - 1] = std::move(*numbers);
        }
    const auto &[starts, ends, axes, steps] = given;
    const bool has_axes = operand(operands, 3) != nullptr,
               has_steps = operand(operands, 4) != nullptr;
    if (starts.size() != ends.size() || (has_axes && axes.size() != starts.size()) ||
        (has_steps && steps.size() != starts.size()) || (!has_axes && starts.size() > x.rank))
        return false;
    Dims strides = x.strides(), lengths(x.shape().begin(), x.shape().end());
    std::array<bool, Tensor::kRankMax> is_cut{};
    std::optional<size_t> only; ///< the axis that is cut, if it is one
    int64_t first = 0;
    for (size_t index = 0; index < starts.size(); ++index) {
        const auto axis = axis_of(has_axes ? axes[index] : static_cast<int64_t>(index), x.rank);
        const int64_t step = has_steps ? steps[index] : 1;
        if (!axis || is_cut[*axis] || step == 0 || step == INT64_MIN)
            return false;
        is_cut[*axis] = true;
        const int64_t length = x.lengths[*axis];
        const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? length : length - 1;
        const auto place = [=](int64_t at) {
            return std::clamp<int64_t>(at < 0 ? at + length : at, least, most);
        };
        const int64_t start = place(starts[index]), stop = place(ends[index]);
        const int64_t span = step > 0 ? stop - start : start - stop, by = std::abs(step);
        lengths[*axis] = span <= 0 ? 0 : (span - 1) / by + 1;
        first += lengths[*axis] == 0 ? 0 : start * strides[*axis];
        only = starts.size() == 1 && step == 1 ? axis : std::nullopt;
        strides[*axis] = lengths[*axis] > 1 ? strides[*axis] * step : strides[*axis];
    }
    results[0] = room.make(x.type, lengths);
    if (results[0].count() == 0)
        return true;
    if (only && element_count(x.shape().first(*only)) <= kFewParts)
        copy_interval(x, *only, first / strides[*only], results[0]);
    else
        copy_box(x, first, strides, results[0], threads);
    return true;
}

bool concat(const SizedSettings &settings, Operands operands, Results results,
            const TensorRoom &room, int) {
    if (operands.empty() || std::ranges::count(operands, nullptr) > 0)
        return false;
    const Tensor &first = *operands[0];
    const auto axis = axis_of(settings.integers[0], first.rank);
    if (!axis)
        return false;
    Dims lengths(first.shape().begin(), first.shape().end());
    for (const Tensor *each : operands.subspan(1)) {
        if (each->type != first.type || each->rank != first.rank)
            return false;
        for (size_t other = 0; other < first.rank; ++other)
            if (other != *axis && each->lengths[other] != first.lengths[other])
                return false;
        lengths[*axis] += each->lengths[*axis];
    }
    Tensor &target = results[0];
    target = room.make(first.type, lengths);
    const int64_t outer = element_count(target.shape().first(*axis));
    const int64_t row = outer == 0 ? 0 : target.size_bytes() / outer;
    int64_t start = 0;
    for (const Tensor *each : operands) {
        const int64_t part = outer == 0 ? 0 : each->size_bytes() / outer;
        for (int64_t index = 0; index < outer && part > 0; ++index)
            std::memcpy(target.data + index * row + start, each->data + index * part,
                        static_cast<size_t>(part));
        start += part;
    }
    return true;
}

/// Split along an axis, by lengths that are an operand, or settings, or equal.
bool split(const SizedSettings &settings, Operands operands, Results results,
           const TensorRoom &room, int threads) {
    const Tensor &x = *operands[0];
    const auto axis = axis_of(settings.integers[0], x.rank);
    if (!axis)
        return false;
    std::vector<int64_t> lengths(settings.integers.begin() + 1, settings.integers.end());
    if (const Tensor *given = operand(operands, 1)) {
        auto numbers = integers_of(*given);
        if (!numbers)
            return false;
        lengths = std::move(*numbers);
    }
    const auto count = static_cast<int64_t>(results.size());
    const int64_t whole = x.lengths[*axis];
    if (lengths.empty() && whole % count == 0)
        lengths.assign(results.size(), whole / count);
    int64_t total = 0;
    for (const int64_t length : lengths) {
        if (length < 0 || length > whole)
            return false;
        total += length;
    }
    if (lengths.size() != results.size() || total != whole)
        return false;
    const Dims strides = x.strides();
    int64_t start = 0;
    for (size_t index = 0; index < results.size(); ++index) {
        Dims part(x.shape().begin(), x.shape().end());
        part[*axis] = lengths[index];
        results[index] = room.make(x.type, part);
        if (results[index].count() > 0)
            copy_box(x, start * strides[*axis], strides, results[index], threads);
        start += lengths[index];
    }
    return true;
}

/// Results from which Expand stays a view of NumPy's.
constexpr int64_t kExpandedBytes = 1 << 20;

bool expand(const SizedSettings &, Operands operands, Results results, const TensorRoom &room,
            int threads) {
    const Tensor &x = *operands[0];
    const auto wanted = integers_of(*operands[1]);
    if (!wanted || wanted->size() > Tensor::kRankMax)
        return false;
    const size_t rank = std::max<size_t>(x.rank, wanted->size());
    Dims lengths(rank, 1), strides(rank, 0);
    std::copy(wanted->begin(), wanted->end(), lengths.end() - static_cast<int64_t>(wanted->size()));
    const Dims own = x.strides();
    int64_t bytes = x.item();
    for (size_t axis = 0; axis < rank; ++axis) {
        if (axis + x.rank >= rank) {
            const size_t source = axis + x.rank - rank;
            const int64_t length = x.lengths[source];
            if (length != 1 && lengths[axis] != 1 && length != lengths[axis])
                return false;
            lengths[axis] = length == 1 ? lengths[axis] : length;
            strides[axis] = length == 1 ? 0 : own[source];
        }
        bytes = counted({bytes, lengths[axis]});
    }
    if (bytes > kExpandedBytes)
        return false;
    results[0] = room.make(x.type, lengths);
    if (results[0].count() > 0)
        StridedCopy(x.item(), lengths, strides, results[0].strides())
            .run(x.data, results[0].data, threads);
    return true;
}

bool tile(const SizedSettings &, Operands operands, Results results, const TensorRoom &room,
          int threads) {
    const Tensor &x = *operands[0];
    const auto times = integers_of(*operands[1]);
    if (!times || times->size() != x.rank)
        return false;
    Dims lengths(x.rank), shape, from, to;
    for (size_t axis = 0; axis < x.rank; ++axis)
        lengths[axis] = counted({x.lengths[axis], (*times)[axis]});
    results[0] = room.make(x.type, lengths);
    const Dims own = x.strides(), target = results[0].strides();
    for (size_t axis = 0; axis < x.rank; ++axis) {
        shape.insert(shape.end(), {(*times)[axis], x.lengths[axis]});
        from.insert(from.end(), {0, own[axis]});
        to.insert(to.end(), {target[axis] * x.lengths[axis], target[axis]});
    }
    if (results[0].count() > 0)
        StridedCopy(x.item(), shape, from, to).run(x.data, results[0].data, threads);
    return true;
}

constexpr SizedRow kMovementRows[] = {
    {"Transpose", transpose}, {"Slice", slice},   {"Concat", concat, 1},
    {"Split", split, 1},      {"Expand", expand}, {"Tile", tile},
};

} // namespace

SizedPointer sized_movement(std::string_view name, const SizedSettings &settings) {
    return sized_of(kMovementRows, name, settings);
}

} // namespace tightship::kernels
