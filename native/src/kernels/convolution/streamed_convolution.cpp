#include "tightship/kernels/convolution/convolution.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#ifdef __x86_64__
#include <immintrin.h>
#endif
// The intrinsics of GCC 12 leave some results undefined at first, and GCC warns of them.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace tightship::kernels {

namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kBlock = 32;     ///< outputs that a block of weights serves
constexpr int64_t kLine = 64;      ///< bytes of a cache line
constexpr int64_t kTile = 14;      ///< rows that are held in registers
constexpr int64_t kGathered = 256; ///< rows gathered at once

constexpr int64_t kAhead = 16384; ///< bytes of weights between fetch and use
constexpr int64_t kFewRows = 3;   ///< rows whose sums of several blocks fit in registers
constexpr int64_t kAtOnce = 4;    ///< blocks multiplied by few rows at once
constexpr int64_t kNear = 8;      ///< channels between fetch and use of each of them

/// Returns the floats of the rows that one thread gathers.
int64_t gathered_floats(const ConvolutionShape &shape) {
    return std::min(shape.rows(), kGathered) * shape.depth;
}

/// Some rows of the source by one block of weights, over `depth` channels.
struct Tile {
    const float *source, *weights;
    float *target;
    int64_t source_step, target_step, depth;
    const float *start;   ///< initial sums: a bias, or null to continue sums
    const float *addend;  ///< rows `target_step` apart, or null
    const char *ahead[2]; ///< lines to prefetch, and the bytes to advance by
    int64_t ahead_step;
    int64_t columns; ///< of this block, up to 32
    bool is_last;
    float low, high;
};

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC target("avx512f")

__mmask16 mask_of(int64_t columns) {
    return static_cast<__mmask16>(columns >= kLanes ? 0xFFFF
                                                    : (1u << std::max<int64_t>(columns, 0)) - 1);
}

template <int Rows> using Sums = __m512[Rows][2];

template <int Rows> void begin(const Tile &tile, Sums<Rows> &sums, const __mmask16 (&masks)[2]) {
    const float *from = tile.start == nullptr ? tile.target : tile.start;
    const int64_t step = tile.start == nullptr ? tile.target_step : 0;
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
        sums[row][0] = _mm512_maskz_loadu_ps(masks[0], from + row * step);
        sums[row][1] = _mm512_maskz_loadu_ps(masks[1], from + row * step + kLanes);
    }
    if (tile.addend == nullptr)
        return;
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
        const float *addend = tile.addend + row * tile.target_step;
        sums[row][0] = _mm512_add_ps(sums[row][0], _mm512_maskz_loadu_ps(masks[0], addend));
        sums[row][1] =
            _mm512_add_ps(sums[row][1], _mm512_maskz_loadu_ps(masks[1], addend + kLanes));
    }
}

template <int Rows>
void end(const Tile &tile, const Sums<Rows> &sums, const __mmask16 (&masks)[2]) {
    const float unbounded = std::numeric_limits<float>::infinity();
    const __m512 low = _mm512_set1_ps(tile.is_last ? tile.low : -unbounded);
    const __m512 high = _mm512_set1_ps(tile.is_last ? tile.high : unbounded);
    float *target = tile.target;
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row, target += tile.target_step) {
        const __m512 left = _mm512_min_ps(high, _mm512_max_ps(low, sums[row][0]));
        const __m512 right = _mm512_min_ps(high, _mm512_max_ps(low, sums[row][1]));
        _mm512_mask_storeu_ps(target, masks[0], left);
        _mm512_mask_storeu_ps(target + kLanes, masks[1], right);
    }
}

/// Loads an element of a row. Three rows share a pointer, so that all pointers fit in registers.
template <int Row> __m512 factor(const char *const (&threes)[5], int64_t step) {
    return _mm512_set1_ps(*reinterpret_cast<const float *>(threes[Row / 3] + Row % 3 * step));
}

template <int... Row>
void add(const char *const (&threes)[5], int64_t step, __m512 left, __m512 right,
         Sums<sizeof...(Row)> &sums, std::integer_sequence<int, Row...>) {
    const auto each = [&]<int R>() __attribute__((always_inline)) {
        const __m512 value = factor<R>(threes, step);
        sums[R][0] = _mm512_fmadd_ps(value, left, sums[R][0]);
        sums[R][1] = _mm512_fmadd_ps(value, right, sums[R][1]);
    };
    (each.template operator()<Row>(), ...);
}

template <int Rows> void multiply(const Tile &tile) {
    const __mmask16 masks[2] = {mask_of(tile.columns), mask_of(tile.columns - kLanes)};
    Sums<Rows> sums;
    begin<Rows>(tile, sums, masks);
    const int64_t step = tile.source_step * static_cast<int64_t>(sizeof(float));
    const char *threes[5];
    for (int three = 0; three < 5; ++three)
        threes[three] = reinterpret_cast<const char *>(tile.source) + 3 * three * step;
    const float *weights = tile.weights;
    const char *ahead = tile.ahead[0];
    const int64_t second = tile.ahead[1] - ahead;
    for (int64_t index = 0; index < tile.depth; ++index) {
        const __m512 left = _mm512_loadu_ps(weights), right = _mm512_loadu_ps(weights + kLanes);
        _mm_prefetch(ahead, _MM_HINT_T1);
        _mm_prefetch(ahead + second, _MM_HINT_T1);
        ahead += tile.ahead_step;
        add(threes, step, left, right, sums, std::make_integer_sequence<int, Rows>{});
        for (const char *&three : threes)
            three += sizeof(float);
        weights += kBlock;
    }
    end<Rows>(tile, sums, masks);
}

/// Multiplies few rows by several blocks of weights at once: one core reads several streams from
/// memory faster than one.
template <int Rows> void multiply_blocks(const Tile &tile) {
    const __mmask16 masks[2] = {mask_of(kBlock), mask_of(kBlock)};
    const int64_t size = tile.depth * kBlock;
    Sums<Rows> sums[kAtOnce];
    Tile part = tile;
#pragma GCC unroll 4
    for (int block = 0; block < kAtOnce; ++block) {
        part.target = tile.target + block * kBlock;
        part.start = tile.start + (tile.start == nullptr ? 0 : block * kBlock);
        part.addend = tile.addend + (tile.addend == nullptr ? 0 : block * kBlock);
        begin<Rows>(part, sums[block], masks);
    }
    const int64_t near_end = std::max<int64_t>(tile.depth - kNear, 0);
    for (int64_t index = 0; index < tile.depth; ++index) {
        const float *weights = tile.weights + index * kBlock;
        const float *ahead =
            weights + kNear * kBlock + (index < near_end ? 0 : (kAtOnce - 1) * size);
#pragma GCC unroll 4
        for (int block = 0; block < kAtOnce; ++block) {
            _mm_prefetch(reinterpret_cast<const char *>(ahead + block * size), _MM_HINT_T0);
            _mm_prefetch(reinterpret_cast<const char *>(ahead + block * size + kLanes),
                         _MM_HINT_T0);
            const __m512 left = _mm512_loadu_ps(weights + block * size);
            const __m512 right = _mm512_loadu_ps(weights + block * size + kLanes);
#pragma GCC unroll 4
            for (int row = 0; row < Rows; ++row) {
                const __m512 value = _mm512_set1_ps(tile.source[row * tile.source_step + index]);
                sums[block][row][0] = _mm512_fmadd_ps(value, left, sums[block][row][0]);
                sums[block][row][1] = _mm512_fmadd_ps(value, right, sums[block][row][1]);
            }
        }
    }
#pragma GCC unroll 4
    for (int block = 0; block < kAtOnce; ++block) {
        part.target = tile.target + block * kBlock;
        end<Rows>(part, sums[block], masks);
    }
}

#pragma GCC pop_options

using Multiply = void (*)(const Tile &);
constexpr Multiply kMultiply[kTile + 1] = {nullptr,      multiply<1>,  multiply<2>,  multiply<3>,
                                           multiply<4>,  multiply<5>,  multiply<6>,  multiply<7>,
                                           multiply<8>,  multiply<9>,  multiply<10>, multiply<11>,
                                           multiply<12>, multiply<13>, multiply<14>};
constexpr Multiply kMultiplyBlocks[kFewRows + 1] = {nullptr, multiply_blocks<1>, multiply_blocks<2>,
                                                    multiply_blocks<3>};

#else

using Multiply = void (*)(const Tile &);
constexpr Multiply kMultiply[kTile + 1] = {};
constexpr Multiply kMultiplyBlocks[kFewRows + 1] = {};

#endif

/// Rows of the target, and blocks of its columns.
struct Part {
    int64_t first_row, row_count, first_block, block_end;
};

/// Copies the channels of one tap, as many as a chunk is deep, for the part's rows; zeros outside
/// the image.
void gather(const ConvolutionShape &shape, const float *source, int64_t tap, int64_t channel,
            const Part &part, float *rows) {
    const int64_t tap_y = tap / shape.kernel[1] * shape.dilations[0] - shape.pads[0];
    const int64_t tap_x = tap % shape.kernel[1] * shape.dilations[1] - shape.pads[1];
    const auto bytes = static_cast<size_t>(shape.depth) * sizeof(float);
    int64_t x = part.first_row % shape.target[1];
    int64_t y = part.first_row / shape.target[1] % shape.target[0];
    int64_t image = part.first_row / (shape.target[0] * shape.target[1]);
    for (int64_t row = 0; row < part.row_count; ++row) {
        const int64_t from_y = y * shape.strides[0] + tap_y, from_x = x * shape.strides[1] + tap_x;
        float *to = rows + row * shape.depth;
        if (from_y < 0 || from_y >= shape.source[0] || from_x < 0 || from_x >= shape.source[1])
            std::memset(to, 0, bytes);
        else
            std::memcpy(to,
                        source +
                            ((image * shape.source[0] + from_y) * shape.source[1] + from_x) *
                                shape.channels +
                            channel,
                        bytes);
        if (++x == shape.target[1]) {
            x = 0;
            if (++y == shape.target[0]) {
                y = 0;
                ++image;
            }
        }
    }
}

/// Operands of one run; absent ones are null.
struct Operands {
    const float *source, *weights, *bias, *addend;
    float *target, *scratch;
};

class StreamedConvolution : public Kernel {
  public:
    StreamedConvolution(const ConvolutionShape &shape, bool has_bias, bool has_addend, float low,
                        float high)
        : shape_(shape), has_bias_(has_bias), has_addend_(has_addend), low_(low), high_(high) {}

    /// Room for each thread to gather the source's rows in; none for a product.
    int64_t scratch_bytes(int threads) const override {
        const int64_t blocks = (shape_.outputs + kBlock - 1) / kBlock;
        return shape_.is_product() ? 0
                                   : std::min<int64_t>(threads, blocks) * gathered_floats(shape_) *
                                         static_cast<int64_t>(sizeof(float));
    }

    void run(std::span<char *const> operands, int threads) const override {
        size_t next = 0;
        const auto take = [&](bool present) {
            return present ? reinterpret_cast<float *>(operands[next++]) : nullptr;
        };
        Operands places{};
        places.source = take(true);
        places.weights = take(true);
        places.bias = take(has_bias_);
        places.addend = take(has_addend_);
        places.target = take(true);
        places.scratch = take(!shape_.is_product());
        const int64_t blocks = (shape_.outputs + kBlock - 1) / kBlock;
        const int64_t tickets = std::min<int64_t>(threads, blocks);
        parallel_for(threads, blocks, blocks / tickets, [&](int64_t begin, int64_t end) {
            Operands own = places;
            if (own.scratch != nullptr)
                own.scratch += (begin * tickets + blocks - 1) / blocks * gathered_floats(shape_);
            const int64_t most = shape_.is_product() ? shape_.rows() : kGathered;
            for (int64_t first = 0; first < shape_.rows(); first += most)
                compute(own, {first, std::min(most, shape_.rows() - first), begin, end});
        });
    }

    std::vector<Reach> reach() const override { return shape_.reach(has_bias_, has_addend_); }

  private:
    void compute(const Operands &places, const Part &part) const {
        const int64_t chunks = shape_.taps() * shape_.channels / shape_.depth;
        if (shape_.by_block) {
            for (int64_t block = add_blocks(places, part); block < part.block_end; ++block)
                for (int64_t chunk = 0; chunk < chunks; ++chunk)
                    add_block(places, part, block, chunk, rows_of(places, part, chunk));
            return;
        }
        for (int64_t chunk = 0; chunk < chunks; ++chunk) {
            const Tile rows = rows_of(places, part, chunk);
            for (int64_t block = part.first_block; block < part.block_end; ++block)
                add_block(places, part, block, chunk, rows);
        }
    }

    /// Returns a chunk of the depth of all the part's rows, gathered if necessary.
    Tile rows_of(const Operands &places, const Part &part, int64_t chunk) const {
        const int64_t deep = chunk * shape_.depth, channel = deep % shape_.channels;
        Tile tile{};
        tile.depth = shape_.depth;
        tile.source = places.source + part.first_row * shape_.channels + channel;
        tile.source_step = shape_.channels;
        if (places.scratch != nullptr) {
            gather(shape_, places.source, deep / shape_.channels, channel, part, places.scratch);
            tile.source = places.scratch;
            tile.source_step = shape_.depth;
        }
        tile.is_last = deep + shape_.depth == shape_.taps() * shape_.channels;
        return tile;
    }

    /// Computes the blocks of a product of few rows that can be computed several at once; returns
    /// the first one left.
    int64_t add_blocks(const Operands &places, const Part &part) const {
        int64_t block = part.first_block;
        if (!shape_.is_product() || part.row_count > kFewRows)
            return block;
        const int64_t whole = std::min(part.block_end, shape_.outputs / kBlock);
        for (; block + kAtOnce <= whole; block += kAtOnce) {
            Tile tile = of_block(places, block, 0, rows_of(places, part, 0));
            const int64_t at = part.first_row * shape_.outputs + block * kBlock;
            tile.target = places.target + at;
            tile.addend = places.addend == nullptr ? nullptr : places.addend + at;
            kMultiplyBlocks[part.row_count](tile);
        }
        return block;
    }

    /// Completes a tile with its weights, the initial sums, and the end of its sums.
    Tile of_block(const Operands &places, int64_t block, int64_t chunk, Tile tile) const {
        static constexpr float kZeros[kAtOnce * kBlock] = {};
        const int64_t column = block * kBlock, size = shape_.depth * kBlock;
        const int64_t blocks = (shape_.outputs + kBlock - 1) / kBlock;
        const int64_t chunks = shape_.taps() * shape_.channels / shape_.depth;
        tile.weights = places.weights +
                       (shape_.by_block ? block * chunks + chunk : chunk * blocks + block) * size;
        tile.target_step = shape_.outputs;
        tile.columns = std::min(kBlock, shape_.outputs - column);
        tile.low = low_;
        tile.high = high_;
        if (chunk == 0)
            tile.start = places.bias == nullptr ? kZeros : places.bias + column;
        return tile;
    }

    /// Adds the products of a block of weights to the sums in the target.
    void add_block(const Operands &places, const Part &part, int64_t block, int64_t chunk,
                   const Tile &rows) const {
        Tile tile = of_block(places, block, chunk, rows);
        const int64_t column = block * kBlock;
        const int64_t tiles = (part.row_count + kTile - 1) / kTile;
        const char *ahead = reinterpret_cast<const char *>(tile.weights) + kAhead;
        const float *source = tile.source;
        for (int64_t index = 0, row = 0; index < tiles; ++index) {
            const int64_t count = (part.row_count - row + tiles - index - 1) / (tiles - index);
            const int64_t at = (part.first_row + row) * shape_.outputs + column;
            tile.source = source + row * tile.source_step;
            tile.target = places.target + at;
            tile.addend = chunk == 0 && places.addend != nullptr ? places.addend + at : nullptr;
            fetch(tile, ahead, index, tiles);
            kMultiply[count](tile);
            row += count;
        }
    }

    /// Makes the first two tiles prefetch half of the next weights each, a single one all.
    static void fetch(Tile &tile, const char *ahead, int64_t index, int64_t tiles) {
        const int64_t half = tile.depth * kLine;
        tile.ahead[0] = ahead + (index == 1 ? half : 0);
        tile.ahead[1] = tile.ahead[0] + (tiles == 1 ? half : 0);
        tile.ahead_step = index < 2 ? kLine : 0;
    }

    ConvolutionShape shape_;
    bool has_bias_, has_addend_;
    float low_, high_;
};

} // namespace

std::shared_ptr<const Kernel> streamed_convolution(const ConvolutionShape &shape, bool has_bias,
                                                   bool has_addend, float low, float high) {
    shape.check();
    return std::make_shared<StreamedConvolution>(shape, has_bias, has_addend, low, high);
}

} // namespace tightship::kernels
