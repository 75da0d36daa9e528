/// Loops of depthwise convolutions of planes, compiled once for each instruction set.
#pragma once

#include "plane_groups.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Takes elements 0, 2, 4, ... of two vectors, or those after them.
template <int kFirst> Vector every_second(Vector a, Vector b) {
#if TIGHTSHIP_VECTOR_BYTES == 64
    return __builtin_shufflevector(a, b, kFirst, kFirst + 2, kFirst + 4, kFirst + 6, kFirst + 8,
                                   kFirst + 10, kFirst + 12, kFirst + 14, kFirst + 16, kFirst + 18,
                                   kFirst + 20, kFirst + 22, kFirst + 24, kFirst + 26, kFirst + 28,
                                   kFirst + 30);
#elif TIGHTSHIP_VECTOR_BYTES == 32
    return __builtin_shufflevector(a, b, kFirst, kFirst + 2, kFirst + 4, kFirst + 6, kFirst + 8,
                                   kFirst + 10, kFirst + 12, kFirst + 14);
#else
    return __builtin_shufflevector(a, b, kFirst, kFirst + 2, kFirst + 4, kFirst + 6);
#endif
}

inline int64_t within(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/// Elements of a vector that are there; the others are zeros.
class Lanes {
  public:
    Lanes(int64_t low, int64_t high)
        : begin_(within(low, 0, kWidth)), end_(within(high, begin_, kWidth)) {}

    Vector load(const float *from) const {
#if TIGHTSHIP_VECTOR_BYTES == 64
        const unsigned mask = ((1U << end_) - 1U) & ~((1U << begin_) - 1U);
        return _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
#else
        return load_apart(from, 1);
#endif
    }

    Vector load_apart(const float *from, int64_t step) const {
        Vector result{};
        for (int64_t lane = begin_; lane < end_; ++lane)
            result[lane] = from[lane * step];
        return result;
    }

    bool are_all() const { return begin_ == 0 && end_ == kWidth; }

  private:
    int64_t begin_, end_;
};

/// Rows of a column of vectors: `count` rows of the source from `top` on, every `step`th, of which
/// those in [0, height) are there.
struct VectorColumn {
    const float *from; ///< in row 0
    int64_t from_row;
    float *to;
    int64_t to_row;
    int64_t top, count, step, height;

    template <class Fill> void each_row(const Fill &fill) const {
        float *target = to;
        for (int64_t row = top; row < top + count; row += step, target += to_row)
            fill(row >= 0 && row < height ? from + row * from_row : nullptr, target);
    }

    template <class Load> void fill(const Load &load) const {
        each_row([&](const float *row, float *target) {
            store(target, row == nullptr ? Vector{} : load(row));
        });
    }

    /// Fills vectors of elements `apart` from each other, of which `low` to `high` are there.
    void fill(int64_t apart, int64_t low, int64_t high) const {
        const Lanes lanes(low, high);
        if (apart != 1)
            return fill([&](const float *row) { return lanes.load_apart(row, apart); });
        if (lanes.are_all())
            return fill([](const float *row) { return load(row); });
        fill([&](const float *row) { return lanes.load(row); });
    }

    /// Fills vectors of two columns from elements in turns, of which `low` to `high` are there.
    void fill_pairs(int64_t pitch, int64_t low, int64_t high) const {
        const Lanes first(low, high), second(low - kWidth, high - kWidth);
        const bool are_all = first.are_all() && second.are_all();
        each_row([&](const float *row, float *target) {
            Vector a{}, b{};
            if (row != nullptr) {
                a = are_all ? load(row) : first.load(row);
                b = are_all ? load(row + kWidth) : second.load(row + kWidth);
            }
            store(target, every_second<0>(a, b));
            store(target + pitch, every_second<1>(a, b));
        });
    }
};

/// Place of a tile in the results: its plane of the source, first row and column, and lengths.
struct PlanePart {
    int64_t plane, y, x, rows, columns;
};

inline PlanePart part_at(const PlaneShape &shape, const PlaneTile &size, int64_t index) {
    PlanePart part{index, 0, 0, size.rows, size.columns};
    if (size.down * size.across > 1) {
        const int64_t line = index / size.across;
        part.plane = line / size.down;
        part.x = (index - line * size.across) * size.columns;
        part.y = (line - part.plane * size.down) * size.rows;
        part.rows = within(shape.target[0] - part.y, 0, size.rows);
        part.columns = within(shape.target[1] - part.x, 0, size.columns);
    }
    return part;
}

/// Tile of a plane of the source, on the stack.
class Plane {
  public:
    Plane(const PlaneTask &task, float *tile)
        : task_(task), shape_(*task.shape), size_(*task.tile), tile_(tile) {}

    /// Copies what the results of a part read.
    void fill(const PlanePart &part) const {
        const int64_t height = shape_.source[0], width = shape_.source[1];
        const int64_t down = shape_.strides[0], across = shape_.strides[1];
        const int64_t top = part.y * down - shape_.pads[0];
        const int64_t left = part.x * across - shape_.pads[1];
        const int64_t count = shape_.reached(0, part.rows);
        const int64_t before = within(-left, 0, size_.row),
                      past = within(width - left, 0, size_.row);
        const float *plane = task_.source + part.plane * height * width + left;
        const auto column_at = [&](int64_t rest, int64_t column, int64_t x) {
            float *to = tile_ + rest * size_.same_rows * size_.row + column * size_.pitch + x;
            return VectorColumn{plane + column + x * across,
                                width,
                                to,
                                size_.row,
                                top + rest,
                                count - rest,
                                down,
                                height};
        };
        for (int64_t rest = 0; rest < down; ++rest)
            for (int64_t x = 0; x < size_.pitch; x += kWidth) {
                if (across == 2) {
                    column_at(rest, 0, x).fill_pairs(size_.pitch, before - 2 * x, past - 2 * x);
                    continue;
                }
                for (int64_t column = 0; column < across; ++column) {
                    const int64_t low = (before - column + across - 1) / across;
                    const int64_t high = (past - column + across - 1) / across;
                    column_at(rest, column, x).fill(across, low - x, high - x);
                }
            }
    }

    /// Computes a part of the results of `channel`, whose plane is `target`.
    void results(const PlanePart &part, float *target, int64_t channel) const {
        const int64_t rows = part.rows, columns = part.columns;
        const float *weights = task_.weights + channel * shape_.taps();
        const float bias = task_.bias[channel];
        const int64_t width = shape_.target[1];
        float *to = target + part.y * width + part.x;
        if (size_.rows < kPlaneRowsMin) {
            for (int64_t row = 0; row < rows; ++row)
                side_by_side(weights, bias, tile_ + row * size_.row, to + row * width, columns);
            return;
        }
        // Columns past the last that belong to the next row are written again with it.
        const int64_t step = columns < kWidth && columns == width ? columns : 0;
        for (int64_t row = 0; row < rows;) {
            const int64_t left = rows - row;
            const int64_t parts = (left + kPlaneVectors - 1) / kPlaneVectors;
            const int64_t count = (left + parts - 1) / parts;
            const Lines lines{weights, tile_ + row * size_.row, to + row * width, size_.row, width};
            if (columns < kWidth) {
                lines_of(count)(task_, lines, bias, step ? left * step : columns, step);
            } else {
                for (int64_t column = 0;; column += kWidth) {
                    column = column > columns - kWidth ? columns - kWidth : column;
                    lines_of(count)(task_, lines.moved(column), bias, kWidth, 0);
                    if (column == columns - kWidth)
                        break;
                }
            }
            row += count;
        }
    }

  private:
    /// Vectors of results: their weights, source and target, and the distances of both.
    struct Lines {
        const float *weights, *source;
        float *target;
        int64_t source_step, target_step;

        Lines moved(int64_t columns) const {
            return {weights, source + columns, target + columns, source_step, target_step};
        }
    };

    void side_by_side(const float *weights, float bias, const float *source, float *target,
                      int64_t columns) const {
        for (int64_t column = 0; column < columns; column += kPlaneVectors * kWidth) {
            const int64_t left = columns - column;
            const int64_t vectors = (left + kWidth - 1) / kWidth;
            const Lines lines{weights, source + column, target + column, kWidth, kWidth};
            lines_of(vectors < kPlaneVectors ? vectors : kPlaneVectors)(task_, lines, bias, left,
                                                                        kWidth);
        }
    }

    /// Adds the products of `kTaps` taps that are below one another, of which each vector of the
    /// source but the outermost has several.
    template <int kTaps, int kCount>
    static void add(const Lines &lines, const PlaneColumn &column, int64_t weight_step,
                    Vector (&sums)[kCount]) {
        Vector weights[kTaps];
        for (int tap = 0; tap < kTaps; ++tap)
            weights[tap] = spread(lines.weights[column.weight + tap * weight_step]);
        const float *from = lines.source + column.source;
#pragma GCC unroll 16
        for (int row = 0; row < kCount + kTaps - 1; ++row) {
            const Vector values = load(from + row * lines.source_step);
#pragma GCC unroll 8
            for (int tap = 0; tap < kTaps; ++tap)
                if (row >= tap && row - tap < kCount)
                    sums[row - tap] += weights[tap] * values;
        }
    }

    /// Computes `kCount` vectors; of the first, `room` elements may be written, of each other
    /// `room_step` fewer than of the one before.
    template <int kCount>
    static void compute(const PlaneTask &task, const Lines &lines, float bias, int64_t room,
                        int64_t room_step) {
        Vector sums[kCount] = {};
        const int64_t weight_step = task.shape->strides[0] * task.shape->kernel[1];
        const PlaneColumn *end = task.columns + task.column_count;
        for (const PlaneColumn *column = task.columns; column < end; ++column) {
            switch (column->count) {
            case 1:
                add<1>(lines, *column, weight_step, sums);
                break;
            case 2:
                add<2>(lines, *column, weight_step, sums);
                break;
            case 3:
                add<3>(lines, *column, weight_step, sums);
                break;
            case 4:
                add<4>(lines, *column, weight_step, sums);
                break;
            default:
                add<kPlaneTaps>(lines, *column, weight_step, sums);
            }
        }
        // Added last, a bias larger than the products costs them no digits.
#pragma GCC unroll 8
        for (int index = 0; index < kCount; ++index)
            sums[index] += spread(bias);
#pragma GCC unroll 8
        for (int index = 0; index < kCount; ++index)
            sums[index] = ended(*task.shape, sums[index]);
        if (room - (kCount - 1) * room_step >= kWidth) {
#pragma GCC unroll 8
            for (int index = 0; index < kCount; ++index)
                store(lines.target + index * lines.target_step, sums[index]);
            return;
        }
#pragma GCC unroll 8
        for (int index = 0; index < kCount; ++index)
            store_some(lines.target + index * lines.target_step, sums[index],
                       room - index * room_step);
    }

    using Compute = void (*)(const PlaneTask &, const Lines &, float, int64_t, int64_t);

    static Compute lines_of(int64_t count) {
        constexpr Compute all[] = {compute<1>, compute<2>, compute<3>, compute<4>,
                                   compute<5>, compute<6>, compute<7>, compute<8>};
        return all[count - 1];
    }

    const PlaneTask &task_;
    const PlaneShape &shape_;
    const PlaneTile &size_;
    float *tile_;
};

} // namespace

void convolve_planes(const PlaneTask &task, int64_t begin, int64_t end) {
    // A vector that begins with a row's last column reaches past the tile.
    alignas(64) float tiles[kPlaneFloats + 2 * kPlaneLine];
    __builtin_memset(tiles + kPlaneFloats, 0, sizeof(float) * 2 * kPlaneLine);
    const PlaneShape &shape = *task.shape;
    const PlaneTile &size = *task.tile;
    const int64_t target = shape.target[0] * shape.target[1];
    const int64_t results = shape.channels * shape.multiplier;
    // As many tiles as fit are filled before the first is read, which then has left the buffer of
    // stores: a load that overlaps several stores there would wait.
    const int64_t floats = size.row * size.same_rows * shape.strides[0];
    const int64_t fitting = kPlaneFloats / floats;
    for (int64_t first = begin; first < end; first += fitting) {
        const int64_t count = end - first < fitting ? end - first : fitting;
        for (int64_t index = 0; index < count; ++index)
            Plane(task, tiles + index * floats).fill(part_at(shape, size, first + index));
        for (int64_t index = 0; index < count; ++index) {
            const PlanePart part = part_at(shape, size, first + index);
            for (int64_t each = 0; each < shape.multiplier; ++each) {
                const int64_t result = part.plane * shape.multiplier + each;
                Plane(task, tiles + index * floats)
                    .results(part, task.target + result * target, result % results);
            }
        }
    }
}

} // namespace tightship::kernels::TIGHTSHIP_ISA
