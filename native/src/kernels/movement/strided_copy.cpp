#include "tightship/kernels/movement/strided_copy.hpp"

#include "tightship/kernels/movement/streamed_copy.hpp"
#include "tightship/kernels/spans.hpp"

#include <cstdlib>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tightship::kernels {

namespace {

constexpr int64_t kStreamedRowBytes = 1 << 16;
constexpr int64_t kTile = 64; ///< rows and columns of a tile, if there are as many

/// Returns a tile's length along one axis, if the other has `across` elements.
int64_t tile_length(int64_t across) {
    return kTile * kTile / std::clamp<int64_t>(across, 1, kTile);
}

int64_t bytes_of(const Dims &shape, int64_t item_bytes) {
    for (const int64_t length : shape)
        item_bytes = counted({item_bytes, length});
    return item_bytes;
}

/// Copies rows that are dense on both sides.
void copy_rows(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t rows,
               int64_t size_bytes, bool is_streamed) {
    const auto copy = is_streamed ? &stream_bytes : &copy_bytes;
    for (; rows > 0; --rows, from += from_step, to += to_step)
        copy(from, to, size_bytes);
}

/// Edge in items of the squares transposed in registers; 1 if the processor has no such code.
template <class Item> constexpr int64_t kSquare = 1;

template <class Item> void turn_square(const char *from, int64_t, char *to, int64_t) {
    store(to, load<Item>(from));
}

#if defined(__SSE2__)
template <> constexpr int64_t kSquare<uint32_t> = 4;
template <> constexpr int64_t kSquare<uint16_t> = 8;

__m128i load_wide(const char *from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
}

void store_wide(char *to, __m128i wide) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to), wide);
}

template <>
void turn_square<uint32_t>(const char *from, int64_t from_step, char *to, int64_t to_step) {
    const __m128i a = load_wide(from), b = load_wide(from + from_step);
    const __m128i c = load_wide(from + 2 * from_step), d = load_wide(from + 3 * from_step);
    const __m128i ab = _mm_unpacklo_epi32(a, b), cd = _mm_unpacklo_epi32(c, d);
    const __m128i ab_high = _mm_unpackhi_epi32(a, b), cd_high = _mm_unpackhi_epi32(c, d);
    store_wide(to, _mm_unpacklo_epi64(ab, cd));
    store_wide(to + to_step, _mm_unpackhi_epi64(ab, cd));
    store_wide(to + 2 * to_step, _mm_unpacklo_epi64(ab_high, cd_high));
    store_wide(to + 3 * to_step, _mm_unpackhi_epi64(ab_high, cd_high));
}

template <>
void turn_square<uint16_t>(const char *from, int64_t from_step, char *to, int64_t to_step) {
    __m128i rows[8], pairs[8], fours[8];
    for (int row = 0; row < 8; ++row)
        rows[row] = load_wide(from + row * from_step);
    for (int row = 0; row < 8; row += 2) {
        pairs[row] = _mm_unpacklo_epi16(rows[row], rows[row + 1]);
        pairs[row + 1] = _mm_unpackhi_epi16(rows[row], rows[row + 1]);
    }
    for (int half = 0; half < 8; half += 4)
        for (int side = 0; side < 2; ++side) {
            const __m128i first = pairs[half + side], second = pairs[half + 2 + side];
            fours[half + 2 * side] = _mm_unpacklo_epi32(first, second);
            fours[half + 2 * side + 1] = _mm_unpackhi_epi32(first, second);
        }
    for (int pair = 0; pair < 4; ++pair) {
        char *target = to + 2 * pair * to_step;
        store_wide(target, _mm_unpacklo_epi64(fours[pair], fours[pair + 4]));
        store_wide(target + to_step, _mm_unpackhi_epi64(fours[pair], fours[pair + 4]));
    }
}
#endif

/// Transposes `rows` by `columns` items: source rows are contiguous, and become columns.
template <class Item>
void turn(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t rows,
          int64_t columns) {
    constexpr int64_t item = sizeof(Item), square = kSquare<Item>;
    const int64_t whole_rows = rows / square * square;
    const int64_t whole_columns = columns / square * square;
    for (int64_t column = 0; column < whole_columns; column += square)
        for (int64_t row = 0; row < whole_rows; row += square)
            turn_square<Item>(from + row * from_step + column * item, from_step,
                              to + column * to_step + row * item, to_step);
    for (int64_t column = 0; column < columns; ++column)
        for (int64_t row = column < whole_columns ? whole_rows : 0; row < rows; ++row)
            store(to + column * to_step + row * item,
                  load<Item>(from + row * from_step + column * item));
}

} // namespace

/// Axes of a copy, the target's innermost last, without those of length one.
struct StridedCopy::Axes {
    Dims lengths, source, target;

    Axes(const Dims &shape, const Dims &from, const Dims &to) {
        for (size_t axis = 0; axis < shape.size(); ++axis) {
            if (shape[axis] == 1)
                continue;
            size_t place = lengths.size();
            while (place > 0 && std::abs(target[place - 1]) < std::abs(to[axis]))
                --place;
            insert(place, shape[axis], from[axis], to[axis]);
        }
        for (size_t axis = lengths.size(); axis-- > 1;)
            if (source[axis - 1] == source[axis] * lengths[axis] &&
                target[axis - 1] == target[axis] * lengths[axis]) {
                lengths[axis - 1] *= lengths[axis];
                source[axis - 1] = source[axis];
                target[axis - 1] = target[axis];
                erase(axis);
            }
    }

    void insert(size_t place, int64_t length, int64_t from, int64_t to) {
        lengths.insert(lengths.begin() + place, length);
        source.insert(source.begin() + place, from);
        target.insert(target.begin() + place, to);
    }

    void erase(size_t axis) {
        lengths.erase(lengths.begin() + axis);
        source.erase(source.begin() + axis);
        target.erase(target.begin() + axis);
    }

    /// Returns the bytes that an element may be widened to: those of a short row that is dense on
    /// both sides.
    int64_t widened(int64_t item_bytes) {
        while (!lengths.empty() && source.back() == item_bytes && target.back() == item_bytes) {
            const int64_t wide = lengths.back() * item_bytes;
            if (wide != 2 && wide != 4 && wide != 8 && wide != 16)
                break;
            item_bytes = wide;
            erase(lengths.size() - 1);
        }
        return item_bytes;
    }

    /// Returns the axis that is dense in the source, if another is in the target.
    size_t turned(int64_t item_bytes) const {
        const size_t last = lengths.size() - 1;
        if (lengths.size() < 2 || target[last] != item_bytes || source[last] == item_bytes)
            return lengths.size();
        for (size_t axis = 0; axis < last; ++axis)
            if (source[axis] == item_bytes && lengths[axis] > 0 && lengths[last] > 0)
                return axis;
        return lengths.size();
    }
};

StridedCopy::StridedCopy(int64_t item_bytes, const Dims &shape, const Dims &source_strides,
                         const Dims &target_strides)
    : source_reach_(reach_of(shape, source_strides, item_bytes)),
      target_reach_(reach_of(shape, target_strides, item_bytes)), rows_({}, {}),
      tile_nest_({}, {}) {
    require_item(item_bytes);
    Axes axes(shape, source_strides, target_strides);
    item_bytes_ = axes.widened(item_bytes);
    const size_t turned = axes.lengths.empty() ? 0 : axes.turned(item_bytes_);
    if (turned == axes.lengths.size()) {
        rows_ = LoopNest<2>(axes.lengths, {axes.source, axes.target});
        is_streamed_ = rows_.row_length() * item_bytes_ >= kStreamedRowBytes &&
                       bytes_of(shape, item_bytes) >= kStreamedBytes;
        return;
    }
    tiles_ = {
        axes.lengths[turned], axes.target[turned], axes.lengths.back(), axes.source.back(), 0, 0};
    axes.erase(axes.lengths.size() - 1);
    axes.erase(turned);
    const int64_t tall = tile_length(tiles_.columns), wide = tile_length(tiles_.rows);
    tiles_.tile_rows = tall;
    tiles_.tile_columns = wide;
    Dims column(axes.lengths.size(), 0), row = column;
    axes.insert(axes.lengths.size(), (tiles_.rows + tall - 1) / tall, tall * tiles_.row_step,
                tall * item_bytes_);
    column.push_back(0);
    row.push_back(tall);
    axes.insert(axes.lengths.size(), (tiles_.columns + wide - 1) / wide, wide * item_bytes_,
                wide * tiles_.column_step);
    column.push_back(wide);
    row.push_back(0);
    tile_nest_ = LoopNest<4>(axes.lengths, {axes.source, axes.target, column, row});
}

void StridedCopy::run(const char *source, char *target, int threads) const {
    if (tiles_.columns == 0)
        run_rows(source, target, threads);
    else
        run_tiles(source, target, threads);
}

void StridedCopy::run_rows(const char *source, char *target, int threads) const {
    const auto [from_step, to_step] = rows_.row_steps();
    const auto [from_block, to_block] = rows_.block_steps();
    const bool together = from_step == item_bytes_ && to_step == item_bytes_;
    with_item(item_bytes_, [&](auto zero) {
        using Item = decltype(zero);
        rows_.for_each_block(threads, [&](const auto &offsets, int64_t rows, int64_t length) {
            const char *from = source + offsets[0];
            char *to = target + offsets[1];
            if (together)
                copy_rows(from, from_block, to, to_block, rows, length * item_bytes_, is_streamed_);
            else
                for (int64_t row = 0; row < rows; ++row)
                    copy_span<Item>(from + row * from_block, from_step, to + row * to_block,
                                    to_step, length);
        });
    });
}

void StridedCopy::run_tiles(const char *source, char *target, int threads) const {
    const Tiles &t = tiles_;
    const int64_t cost = std::min(t.columns, t.tile_columns) * std::min(t.rows, t.tile_rows);
    with_item(item_bytes_, [&](auto zero) {
        using Item = decltype(zero);
        tile_nest_.for_each_row(
            threads,
            [&](auto offsets, int64_t length) {
                for (; length > 0; --length) {
                    turn<Item>(source + offsets[0], t.row_step, target + offsets[1], t.column_step,
                               std::min(t.tile_rows, t.rows - offsets[3]),
                               std::min(t.tile_columns, t.columns - offsets[2]));
                    for (size_t operand = 0; operand < offsets.size(); ++operand)
                        offsets[operand] += tile_nest_.row_steps()[operand];
                }
            },
            cost);
    });
}

} // namespace tightship::kernels
