/// Loops of Winograd's convolution F(4x4, 3x3), compiled once for each instruction set.
///
/// A tile of 4x4 results is `A (sum over channels of (G w G') o (B d B')) A'` of the 6x6 elements d
/// of the source that it reads, where `'` is the transpose and `o` multiplies element by element.
/// The matrices belong to the points 0, 3/4, -3/4, 3/2, -3/2 and infinity of Toom and Cook's
/// algorithm. They are exact in float32, and with them errors are half of those with the usual
/// points 0, 1, -1, 2, -2.
#pragma once

#include "kernels/vector_math.hpp"
#include "winograd_task.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

constexpr int kTile = kWinogradTile, kReach = kWinogradReach;
constexpr int64_t kPlaces = kWinogradPlaces, kOutputs = kWinogradBlock;
constexpr int64_t kPacked = kWinogradPacked;
constexpr int64_t kAdjacent = 16; ///< channels that are adjacent in any layout
constexpr float kNear = 0.75F, kFar = 1.5F;
constexpr float kNearSquare = kNear * kNear, kFarSquare = kFar * kFar;
/// Rows and vectors of a product, as many as keep their sums in registers.
constexpr int kRows = TIGHTSHIP_VECTOR_BYTES == 64 ? 14 : 6;
constexpr int kVectors = 2;

/// Multiplies six elements of the source by B.
inline void transform_source(const Vector (&d)[kReach], Vector (&t)[kReach]) {
    const Vector near_even = d[4] - kFarSquare * d[2], near_odd = d[3] - kFarSquare * d[1];
    const Vector far_even = d[4] - kNearSquare * d[2], far_odd = d[3] - kNearSquare * d[1];
    constexpr float kProduct = kNearSquare * kFarSquare, kSum = kNearSquare + kFarSquare;
    t[0] = kProduct * d[0] + (d[4] - kSum * d[2]);
    t[1] = near_even + kNear * near_odd;
    t[2] = near_even - kNear * near_odd;
    t[3] = far_even + kFar * far_odd;
    t[4] = far_even - kFar * far_odd;
    t[5] = kProduct * d[1] + (d[5] - kSum * d[3]);
}

/// Multiplies three weights by G.
inline void transform_weights(const Vector (&g)[3], Vector (&t)[kReach]) {
    constexpr float kOne = 1.0F / (2.0F * kNearSquare * (kNearSquare - kFarSquare));
    constexpr float kTwo = 1.0F / (2.0F * kFarSquare * (kFarSquare - kNearSquare));
    const Vector near_even = kOne * g[0] + kOne * kNearSquare * g[2],
                 near_odd = kOne * kNear * g[1];
    const Vector far_even = kTwo * g[0] + kTwo * kFarSquare * g[2], far_odd = kTwo * kFar * g[1];
    t[0] = g[0] * (1.0F / (kNearSquare * kFarSquare));
    t[1] = near_even + near_odd;
    t[2] = near_even - near_odd;
    t[3] = far_even + far_odd;
    t[4] = far_even - far_odd;
    t[5] = g[2];
}

/// Multiplies six sums by A.
inline void transform_sums(const Vector (&m)[kReach], Vector (&y)[kTile]) {
    const Vector near_even = m[1] + m[2], near_odd = m[1] - m[2];
    const Vector far_even = m[3] + m[4], far_odd = m[3] - m[4];
    y[0] = m[0] + near_even + far_even;
    y[1] = kNear * near_odd + kFar * far_odd;
    y[2] = kNearSquare * near_even + kFarSquare * far_even;
    y[3] = kNear * kNearSquare * near_odd + (kFar * kFarSquare * far_odd + m[5]);
}

/// Place of a tile: its image, and its first result.
struct Place {
    int64_t image, y, x;
};

class Tiles {
  public:
    Tiles(const WinogradShape &shape)
        : down_((shape.target[0] + kTile - 1) / kTile),
          across_((shape.target[1] + kTile - 1) / kTile) {}

    Place operator[](int64_t tile) const {
        const int64_t row = tile / across_;
        return {row / down_, row % down_ * kTile, tile % across_ * kTile};
    }

  private:
    int64_t down_, across_;
};

inline int64_t offset(const ImageStrides &strides, int64_t channel) {
    return channel / kAdjacent * strides.block + channel % kAdjacent;
}

/// Rows and columns of the elements of a tile that lie in the image.
struct Inside {
    int64_t top, bottom, left, right;
    bool is_whole() const { return top == 0 && left == 0 && bottom == kReach && right == kReach; }
};

/// Transforms a vector of channels of a tile, whose first element is inside the image or not.
template <bool kWhole>
void gather_tile(const float *source, int64_t first, const ImageStrides &strides,
                 const Inside &inside, float *to, int64_t step) {
    Vector half[kReach][kReach];
#pragma GCC unroll 1
    for (int x = 0; x < kReach; ++x) {
        Vector column[kReach];
#pragma GCC unroll 6
        for (int y = 0; y < kReach; ++y) {
            const bool is_inside = kWhole || (y >= inside.top && y < inside.bottom &&
                                              x >= inside.left && x < inside.right);
            column[y] =
                is_inside ? load(source + (first + y * strides.row + x * strides.pixel)) : Vector{};
        }
        Vector done[kReach];
        transform_source(column, done);
#pragma GCC unroll 6
        for (int y = 0; y < kReach; ++y)
            half[y][x] = done[y];
    }
#pragma GCC unroll 1
    for (int y = 0; y < kReach; ++y) {
        Vector row[kReach];
        transform_source(half[y], row);
#pragma GCC unroll 6
        for (int x = 0; x < kReach; ++x)
            store(to + (y * kReach + x) * step, row[x]);
    }
}

inline int64_t least(int64_t one, int64_t other) {
    return one < other ? one : other;
}

inline int64_t clamped(int64_t value, int64_t most) {
    return value < 0 ? 0 : value > most ? most : value;
}

/// Transforms the weights of 16 outputs and some channels, as [36][depth][16 of 32].
inline void transform_block(const float *from, int64_t channels, int64_t depth, float *to,
                            int64_t step) {
    const int64_t tap_step = channels * kPacked;
    for (int64_t channel = 0; channel < depth; ++channel, from += kPacked, to += kOutputs) {
        for (int64_t side = 0; side < kPacked; side += kWidth) {
            Vector half[kReach][3];
#pragma GCC unroll 3
            for (int x = 0; x < 3; ++x) {
                Vector column[3], done[kReach];
#pragma GCC unroll 3
                for (int y = 0; y < 3; ++y)
                    column[y] = load(from + (y * 3 + x) * tap_step + side);
                transform_weights(column, done);
#pragma GCC unroll 6
                for (int y = 0; y < kReach; ++y)
                    half[y][x] = done[y];
            }
#pragma GCC unroll 6
            for (int y = 0; y < kReach; ++y) {
                Vector row[kReach];
                transform_weights(half[y], row);
#pragma GCC unroll 6
                for (int x = 0; x < kReach; ++x)
                    store(to + (y * kReach + x) * step + side, row[x]);
            }
        }
    }
}

/// Writes zeros for 16 outputs that there are not.
inline void clear_block(int64_t depth, float *to, int64_t step) {
    for (int64_t place = 0; place < kPlaces; ++place)
        for (int64_t channel = 0; channel < depth; ++channel)
            for (int64_t side = 0; side < kPacked; side += kWidth)
                store(to + place * step + channel * kOutputs + side, Vector{});
}

/// Multiplies rows of tiles, `depth` elements apart, by weights; adds to the products if asked to.
template <int kCount>
void multiply(const float *rows, const float *weights, int64_t depth, float *products, bool adds) {
    for (int64_t column = 0; column < kOutputs; column += kVectors * kWidth) {
        Vector sums[kCount][kVectors] = {};
        if (adds) {
#pragma GCC unroll 16
            for (int row = 0; row < kCount; ++row)
                for (int side = 0; side < kVectors; ++side)
                    sums[row][side] = load(products + row * kOutputs + column + side * kWidth);
        }
        const float *right = weights + column;
        for (int64_t index = 0; index < depth; ++index, right += kOutputs) {
            const Vector first = load(right), second = load(right + kWidth);
#pragma GCC unroll 16
            for (int row = 0; row < kCount; ++row) {
                const Vector factor = spread(rows[row * depth + index]);
                sums[row][0] += factor * first;
                sums[row][1] += factor * second;
            }
        }
#pragma GCC unroll 16
        for (int row = 0; row < kCount; ++row)
            for (int side = 0; side < kVectors; ++side)
                store(products + row * kOutputs + column + side * kWidth, sums[row][side]);
    }
}

using Multiply = void (*)(const float *, const float *, int64_t, float *, bool);

#if TIGHTSHIP_VECTOR_BYTES == 64
constexpr Multiply kMultiply[kRows + 1] = {nullptr,      multiply<1>,  multiply<2>,  multiply<3>,
                                           multiply<4>,  multiply<5>,  multiply<6>,  multiply<7>,
                                           multiply<8>,  multiply<9>,  multiply<10>, multiply<11>,
                                           multiply<12>, multiply<13>, multiply<14>};
#else
constexpr Multiply kMultiply[kRows + 1] = {nullptr,     multiply<1>, multiply<2>, multiply<3>,
                                           multiply<4>, multiply<5>, multiply<6>};
#endif

/// Writes the results of a tile, for one vector of outputs.
void finish_tile(const WinogradTask &task, const Place &place, int64_t output, const float *sums,
                 int64_t step) {
    const WinogradShape &shape = *task.shape;
    Vector half[kTile][kReach];
#pragma GCC unroll 1
    for (int x = 0; x < kReach; ++x) {
        Vector column[kReach], done[kTile];
#pragma GCC unroll 6
        for (int y = 0; y < kReach; ++y)
            column[y] = load(sums + (y * kReach + x) * step);
        transform_sums(column, done);
#pragma GCC unroll 4
        for (int y = 0; y < kTile; ++y)
            half[y][x] = done[y];
    }
    const ImageStrides &strides = shape.target_strides;
    const int64_t at = place.image * strides.image + place.y * strides.row +
                       place.x * strides.pixel + offset(strides, output);
    const int64_t down = clamped(shape.target[0] - place.y, kTile);
    const int64_t across = clamped(shape.target[1] - place.x, kTile);
    const Vector bias = task.bias == nullptr ? Vector{} : load(task.bias + output);
    const Vector low = spread(shape.low), high = spread(shape.high);
    for (int64_t y = 0; y < down; ++y) {
        Vector row[kTile];
        transform_sums(half[y], row);
        for (int64_t x = 0; x < across; ++x) {
            const int64_t pixel = at + y * strides.row + x * strides.pixel;
            Vector sum = row[x] + bias;
            if (task.addend != nullptr)
                sum += load(task.addend + pixel);
            if (shape.swishes) {
                store(task.target + pixel, sum * sigmoid(sum));
                continue;
            }
            sum = sum < low ? low : sum;
            store(task.target + pixel, sum > high ? high : sum);
        }
    }
}

void gather_tiles(const WinogradTask &task, const WinogradPart &part, int64_t first_channel,
                  int64_t channel_end, float *tiles) {
    const WinogradShape &shape = *task.shape;
    const Tiles places(shape);
    const ImageStrides &strides = shape.source_strides;
    const int64_t step = task.tiles_at_once * shape.channels + kWinogradBetween;
    for (int64_t tile = part.first_tile; tile < part.tile_end; ++tile) {
        const Place place = places[tile];
        const int64_t top = place.y - shape.pads[0], left = place.x - shape.pads[1];
        const Inside inside{clamped(-top, kReach), clamped(shape.source[0] - top, kReach),
                            clamped(-left, kReach), clamped(shape.source[1] - left, kReach)};
        const int64_t first =
            place.image * strides.image + top * strides.row + left * strides.pixel;
        for (int64_t channel = first_channel; channel < channel_end; channel += kWidth) {
            const int64_t chunk = channel / shape.depth * shape.depth;
            const int64_t depth = least(shape.depth, shape.channels - chunk);
            float *to = tiles + chunk * task.tiles_at_once + (tile - part.first_tile) * depth +
                        channel - chunk;
            const int64_t own = first + offset(strides, channel);
            if (inside.is_whole())
                gather_tile<true>(task.source, own, strides, inside, to, step);
            else
                gather_tile<false>(task.source, own, strides, inside, to, step);
        }
    }
}

void compute_tiles(const WinogradTask &task, const WinogradPart &part, int64_t first_block,
                   int64_t block_end, const WinogradScratch &scratch) {
    const WinogradShape &shape = *task.shape;
    const Tiles places(shape);
    const int64_t count = part.tile_end - part.first_tile, most = task.tiles_at_once;
    const int64_t tile_step = most * shape.channels + kWinogradBetween;
    const int64_t weight_step = shape.depth * kOutputs + kWinogradBetween;
    const int64_t product_step = most * kOutputs + kWinogradBetween;
    const int64_t pieces = (count + kRows - 1) / kRows;
    for (int64_t block = first_block; block < block_end; ++block) {
        for (int64_t channel = 0; channel < shape.channels; channel += shape.depth) {
            const int64_t depth = least(shape.depth, shape.channels - channel);
            for (int64_t side = 0; side < kOutputs; side += kPacked) {
                const int64_t packed = (block * kOutputs + side) / kPacked;
                const float *weights =
                    task.weights + (packed * 9 * shape.channels + channel) * kPacked;
                if (block * kOutputs + side < shape.outputs)
                    transform_block(weights, shape.channels, depth, scratch.weights + side,
                                    weight_step);
                else
                    clear_block(depth, scratch.weights + side, weight_step);
            }
            for (int64_t place = 0; place < kPlaces; ++place) {
                const float *rows = scratch.tiles + place * tile_step + channel * most;
                float *products = scratch.products + place * product_step;
                for (int64_t piece = 0, row = 0; piece < pieces; ++piece) {
                    const int64_t some = (count - row + pieces - piece - 1) / (pieces - piece);
                    kMultiply[some](rows + row * depth, scratch.weights + place * weight_step,
                                    depth, products + row * kOutputs, channel != 0);
                    row += some;
                }
            }
        }
        const int64_t output = block * kOutputs;
        for (int64_t tile = 0; tile < count; ++tile)
            for (int64_t side = 0; side < kOutputs && output + side < shape.outputs; side += kWidth)
                finish_tile(task, places[part.first_tile + tile], output + side,
                            scratch.products + tile * kOutputs + side, product_step);
    }
}

} // namespace

const WinogradLoops winograd_loops{gather_tiles, compute_tiles};

} // namespace tightship::kernels::TIGHTSHIP_ISA
