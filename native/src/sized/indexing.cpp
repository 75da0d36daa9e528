/// Operators that choose elements by index or condition.
#include "tightship/kernels/movement/indexed.hpp"
#include "tightship/sized/operators.hpp"

#include <algorithm>
#include <cstring>

namespace tightship::kernels {

namespace {

using enum ElementType;

constexpr std::string_view kCombined[] = {"none", "add", "mul", "max", "min"};
constexpr std::string_view kTypeNames[kElementTypes] = {
    "bool",   "int8",   "int16",   "int32",    "int64",   "uint8",  "uint16",
    "uint32", "uint64", "float16", "bfloat16", "float32", "float64"};

bool has_indices(const Tensor &index) {
    return index.type == kInt32 || index.type == kInt64;
}

/// Elements that tuples of indices select: lengths of the data's axes before their positions, the
/// positions, lengths of the axes behind; for each walked axis that of the data, -1 for a position;
/// and the axes that the elements of a tuple count along.
struct Selection {
    Dims before, positions, behind;
    std::vector<int> walked;
    std::vector<size_t> counted;

    Dims walk() const {
        Dims all = before;
        all.insert(all.end(), positions.begin(), positions.end());
        all.insert(all.end(), behind.begin(), behind.end());
        return all;
    }

    /// Strides of the data under the walked shape.
    Dims of_data(const Dims &steps) const {
        Dims strides;
        for (const int axis : walked)
            strides.push_back(axis < 0 ? 0 : steps[static_cast<size_t>(axis)]);
        return strides;
    }

    /// Strides of the tuples under the walked shape.
    Dims of_tuples(const Dims &strides) const {
        Dims all(before.size(), 0);
        all.insert(all.end(), strides.begin(),
                   strides.begin() + static_cast<int64_t>(positions.size()));
        all.resize(all.size() + behind.size(), 0);
        return all;
    }

    Indexing indexing(const Tensor &data, const Tensor &index) const {
        const Dims strides = index.strides(), steps = data.strides();
        const int64_t between = strides.size() > positions.size() ? strides.back() : 0;
        Indexing made{
            "",
            index.item(),
            positions,
            Dims(strides.begin(), strides.begin() + static_cast<int64_t>(positions.size())),
            {}};
        for (size_t place = 0; place < counted.size(); ++place)
            made.coordinates.push_back({data.lengths[counted[place]],
                                        between * static_cast<int64_t>(place),
                                        steps[counted[place]]});
        return made;
    }
};

void walk_axes(Selection &selection, size_t begin, size_t end) {
    for (size_t axis = begin; axis < end; ++axis)
        selection.walked.push_back(static_cast<int>(axis));
}

void walk_positions(Selection &selection) {
    selection.walked.insert(selection.walked.end(), selection.positions.size(), -1);
}

Dims dims(Shape shape) {
    return {shape.begin(), shape.end()};
}

/// Each index selects a row of an axis.
std::optional<Selection> rows(const SizedSettings &settings, const Tensor &data,
                              const Tensor &index) {
    const auto axis = axis_of(settings.integers[0], data.rank);
    if (!axis)
        return std::nullopt;
    Selection made{dims(data.shape().first(*axis)),
                   dims(index.shape()),
                   dims(data.shape().subspan(*axis + 1)),
                   {},
                   {*axis}};
    walk_axes(made, 0, *axis);
    walk_positions(made);
    walk_axes(made, *axis + 1, data.rank);
    return made;
}

/// Each index replaces one coordinate of its own position.
std::optional<Selection> along_axis(const SizedSettings &settings, const Tensor &data,
                                    const Tensor &index) {
    const auto axis = axis_of(settings.integers[0], data.rank);
    if (!axis || index.rank != data.rank)
        return std::nullopt;
    for (size_t other = 0; other < data.rank; ++other)
        if (other != *axis && index.lengths[other] > data.lengths[other])
            return std::nullopt;
    Selection made{{}, dims(index.shape()), {}, {}, {*axis}};
    walk_axes(made, 0, data.rank);
    made.walked[*axis] = -1;
    return made;
}

/// The last axis of the indices holds leading coordinates, behind as many common axes as the first
/// setting says.
std::optional<Selection> tuples(const SizedSettings &settings, const Tensor &data,
                                const Tensor &index) {
    const int64_t batch = settings.integers[0];
    if (batch < 0 || batch >= index.rank || index.rank == 0)
        return std::nullopt;
    const auto outer = static_cast<size_t>(batch);
    const int64_t last = index.lengths[index.rank - 1u];
    if (last < 1 || batch + last > data.rank)
        return std::nullopt;
    for (size_t axis = 0; axis < outer; ++axis)
        if (index.lengths[axis] != data.lengths[axis])
            return std::nullopt;
    const size_t first = outer + static_cast<size_t>(last);
    Selection made{
        {}, dims(index.shape().first(index.rank - 1u)), dims(data.shape().subspan(first)), {}, {}};
    walk_axes(made, 0, outer);
    made.walked.insert(made.walked.end(), made.positions.size() - outer, -1);
    walk_axes(made, first, data.rank);
    for (size_t axis = outer; axis < first; ++axis)
        made.counted.push_back(axis);
    return made;
}

using Select = std::optional<Selection> (*)(const SizedSettings &, const Tensor &, const Tensor &);

template <Select select>
bool gathered(const SizedSettings &settings, Operands operands, Results results,
              const TensorRoom &room, int threads) {
    const Tensor &data = *operands[0], &index = *operands[1];
    if (!has_indices(index))
        return false;
    const auto selection = select(settings, data, index);
    if (!selection)
        return false;
    const Dims shape = selection->walk();
    results[0] = room.make(data.type, shape);
    if (results[0].count() == 0)
        return true;
    const Indexing indexing = selection->indexing(data, index);
    const Walk walk{shape, selection->of_data(data.strides()),
                    selection->of_tuples(index.strides()), results[0].strides()};
    char *const places[] = {data.data, index.data, results[0].data};
    gather(data.item(), indexing, walk)->run(places, threads);
    return true;
}

/// Copies the rows that indices select; false if one is outside the axis.
template <class Index>
bool copy_rows(const Tensor &data, size_t axis, const Tensor &index, const Tensor &target) {
    const int64_t length = data.lengths[axis], count = index.count();
    const int64_t row = element_count(data.shape().subspan(axis + 1)) * data.item();
    const int64_t outer = element_count(data.shape().first(axis));
    const Index *const places = index.as<Index>();
    for (int64_t place = 0; place < count; ++place)
        if (places[place] < -length || places[place] >= length)
            return false;
    char *to = target.data;
    const char *from = data.data;
    for (int64_t part = 0; part < outer; ++part, from += length * row)
        for (int64_t place = 0; place < count; ++place, to += row) {
            const int64_t at = places[place] < 0 ? places[place] + length : places[place];
            std::memcpy(to, from + at * row, static_cast<size_t>(row));
        }
    return true;
}

/// Gather; few rows are copied one by one, others by threads.
bool gathered_rows(const SizedSettings &settings, Operands operands, Results results,
                   const TensorRoom &room, int threads) {
    constexpr int64_t few = 1 << 10;
    const Tensor &data = *operands[0], &index = *operands[1];
    const auto axis = axis_of(settings.integers[0], data.rank);
    if (!axis || !has_indices(index) || data.rank + index.rank > Tensor::kRankMax + 1u)
        return false;
    const int64_t outer = element_count(data.shape().first(*axis));
    if (outer * index.count() > few)
        return gathered<rows>(settings, operands, results, room, threads);
    std::array<int64_t, 2 * Tensor::kRankMax> lengths;
    auto end = std::ranges::copy(data.shape().first(*axis), lengths.begin()).out;
    end = std::ranges::copy(index.shape(), end).out;
    end = std::ranges::copy(data.shape().subspan(*axis + 1), end).out;
    results[0] = room.make(data.type, {lengths.begin(), end});
    return index.type == kInt32 ? copy_rows<int32_t>(data, *axis, index, results[0])
                                : copy_rows<int64_t>(data, *axis, index, results[0]);
}

template <Select select>
bool scattered(const SizedSettings &settings, Operands operands, Results results,
               const TensorRoom &room, int threads) {
    const Tensor &data = *operands[0], &index = *operands[1], &updates = *operands[2];
    if (!has_indices(index) || updates.type != data.type)
        return false;
    const auto selection = select(settings, data, index);
    if (!selection)
        return false;
    const Dims shape = selection->walk();
    if (shape != dims(updates.shape()))
        return false;
    Tensor &target = results[0];
    if (updates.count() == 0) {
        target = room.make_like(data);
        if (target.data != data.data)
            std::memcpy(target.data, data.data, static_cast<size_t>(data.size_bytes()));
        return true;
    }
    if (data.count() == 0)
        return false;
    const Dims steps = data.strides();
    const Walk walk{shape, selection->of_data(steps), selection->of_tuples(index.strides()),
                    updates.strides()};
    const auto kernel =
        scatter(data.item(), std::string(kTypeNames[static_cast<int>(data.type)]),
                std::string(kCombined[settings.integers[1]]), selection->indexing(data, index),
                walk, {dims(data.shape()), steps, steps});
    if (kernel == nullptr)
        return false;
    target = room.make_like(data);
    char *const places[] = {data.data, index.data, updates.data, target.data};
    kernel->run(places, threads); // throws before it writes
    return true;
}

template <class T> bool is_set(T element) {
    return element != T(0);
}

/// Writes the coordinates of elements that are not zero: a row for each axis.
template <class T> void find_set(const Tensor &x, Results results, const TensorRoom &room) {
    const T *const elements = x.as<T>();
    const int64_t count = x.count();
    int64_t found = 0;
    for (int64_t index = 0; index < count; ++index)
        found += is_set(elements[index]);
    const int64_t lengths[] = {static_cast<int64_t>(x.rank), found};
    results[0] = room.make(kInt64, lengths);
    int64_t *const rows = results[0].as<int64_t>();
    int64_t place = 0;
    for (int64_t index = 0; index < count; ++index) {
        if (!is_set(elements[index]))
            continue;
        int64_t rest = index;
        for (size_t axis = x.rank; axis-- > 0;) {
            rows[static_cast<int64_t>(axis) * found + place] = rest % x.lengths[axis];
            rest /= x.lengths[axis];
        }
        ++place;
    }
}

bool non_zero(const SizedSettings &, Operands operands, Results results, const TensorRoom &room,
              int) {
    const Tensor &x = *operands[0];
    if (x.rank == 0)
        return false;
    switch (x.type) {
    case kFloat32:
        find_set<float>(x, results, room);
        return true;
    case kInt64:
        find_set<int64_t>(x, results, room);
        return true;
    case kInt32:
        find_set<int32_t>(x, results, room);
        return true;
    case kBool:
    case kUint8:
        find_set<uint8_t>(x, results, room);
        return true;
    default:
        return false;
    }
}

constexpr SizedRow kIndexingRows[] = {
    {"Gather", gathered_rows, 1},        {"GatherElements", gathered<along_axis>, 1},
    {"GatherND", gathered<tuples>, 1},   {"ScatterElements", scattered<along_axis>, 2},
    {"ScatterND", scattered<tuples>, 2}, {"NonZero", non_zero},
};

} // namespace

SizedPointer sized_indexing(std::string_view name, const SizedSettings &settings) {
    return sized_of(kIndexingRows, name, settings);
}

} // namespace tightship::kernels
