#include "block_task.hpp"

#ifdef __AMX_BF16__

#define TIGHTSHIP_ISA amx
#define TIGHTSHIP_VECTOR_BYTES 64
#include "block_tiles.hpp"

namespace tightship::kernels::amx {

namespace {

constexpr int64_t kParts = 3;  ///< bfloat16 whose sum is a float32
constexpr int64_t kDepth = 32; ///< elements that the unit multiplies at once, at most
constexpr int64_t kHalves = 2; ///< tiles of columns that rows are multiplied by together

inline int64_t depth_of(const BlockFormat &format) {
    return format.block < kDepth ? format.block : kDepth;
}

/// Sixteen rows of activations: parts [step][part][row], and sums of blocks [block][row].
struct Rows {
    Rows(const BlockTask &task, int64_t row)
        : parts(task.shared + row / kSide * kSide * task.shared_row),
          sums(reinterpret_cast<float *>(parts +
                                         kSide * task.blocks * task.format.block * kParts * 2)) {}

    char *parts;
    float *sums;
};

/// Returns the order of a step's elements: each half of 32 bits of quants in turn, because they
/// are unpacked 16 bits at a time.
inline __m512i order_of(int64_t bits) {
    const int64_t half = 16 / bits;
    alignas(64) uint16_t order[2 * kWidth];
    for (int64_t place = 0; place < 2 * kWidth; ++place) {
        const int64_t within = place % (2 * half);
        const int64_t element = place - within + within % 2 * half + within / 2;
        order[place] = static_cast<uint16_t>(2 * element + 1); // upper 16 bits of a float
    }
    return _mm512_load_si512(order);
}

/// Takes the upper 16 bits of 32 floats, and leaves the rest.
inline __m512i take_part(Vector &low, Vector &high, __m512i order) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000));
    const __m512i left = _mm512_and_si512(_mm512_castps_si512(low), upper);
    const __m512i right = _mm512_and_si512(_mm512_castps_si512(high), upper);
    low -= _mm512_castsi512_ps(left);
    high -= _mm512_castsi512_ps(right);
    return _mm512_permutex2var_epi16(left, order, right);
}

inline Vector load_before(const float *from, int64_t count) {
    return count <= 0 ? Vector{} : load_some(from, count);
}

void split_row(const BlockTask &task, int64_t row) {
    const auto *from = reinterpret_cast<const float *>(task.source + row * task.source_row);
    const Rows to(task, row);
    const __m512i order = order_of(task.format.bits);
    const int64_t depth = depth_of(task.format), end = task.blocks * task.format.block;
    const auto mask = static_cast<__mmask32>((uint64_t{1} << depth) - 1);
    char *parts = to.parts + row % kSide * depth * 2;
    for (int64_t first = 0; first < end; first += depth) {
        const int64_t left = task.depth - first, count = left < depth ? left : depth;
        Vector low = load_before(from + first, count);
        Vector high = load_before(from + first + kWidth, count - kWidth);
        for (int64_t part = 0; part < kParts; ++part) {
            _mm512_mask_storeu_epi16(parts, mask, take_part(low, high, order));
            parts += kSide * depth * 2;
        }
    }
    for (int64_t block = 0; block < task.blocks; ++block) {
        Vector sums{};
        for (int64_t index = 0; index < task.format.block; index += kWidth) {
            const int64_t element = block * task.format.block + index;
            sums += load_before(from + element, task.depth - element);
        }
        to.sums[block * kSide + row % kSide] = sum_of(sums);
    }
}

/// Table of quants as bfloat16, less the middle; the bit behind a quant does not matter.
template <int Bits> __m512i table_of(int sign) {
    alignas(64) uint16_t table[2 * kWidth];
    for (int index = 0; index < 2 * kWidth; ++index) {
        const auto value =
            static_cast<float>(((index & Decoder<Bits>::kMask) ^ sign) - Decoder<Bits>::kMiddle);
        uint32_t bits;
        __builtin_memcpy(&bits, &value, sizeof bits);
        table[index] = static_cast<uint16_t>(bits >> 16);
    }
    return _mm512_load_si512(table);
}

/// Returns bytes of 8 bits, in the lower half of 16, as bfloat16.
inline __m512i halves_of(__m512i bytes, int sign) {
    const __m512i middle = _mm512_set1_epi32(128), mask = _mm512_set1_epi32(0xFF);
    const __m512i flip = _mm512_set1_epi32(sign);
    const auto part = [&](__m512i x) {
        const __m512i natural = _mm512_xor_si512(_mm512_and_si512(x, mask), flip);
        return _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_sub_epi32(natural, middle)));
    };
    const __m512i low = part(bytes), high = part(_mm512_srli_epi32(bytes, 16));
    return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(low, 16), high);
}

/// Unpacks sixteen rows of quants to pairs of bfloat16; rows of a tile are 64 bytes.
template <int Bits>
void unpack_pairs(const Sixteen &from, int64_t bytes, int sign, int64_t depth, char *to) {
    const __m512i table = table_of<Bits>(sign);
    const int64_t rows = depth / 2; // of a tile
    int64_t row = 0;
    for (int64_t at = 0; at < bytes; at += kUnit) {
        __m512i words[4];
        transpose(from, at, words);
        for (const __m512i &word : words)
            for (int part = 0; part < 16 / Bits; ++part, ++row) {
                const __m512i shifted = _mm512_srli_epi16(word, static_cast<unsigned>(part * Bits));
                const __m512i pairs =
                    Bits == 8 ? halves_of(shifted, sign) : _mm512_permutexvar_epi16(shifted, table);
                const int64_t tile = row / rows * kHalves * rows + row % rows;
                _mm512_storeu_si512(to + tile * kLine, pairs);
            }
    }
}

/// Two tiles of sums, of blocks of even or odd number. GCC 12 takes tiles' numbers as text only.
template <int Number> struct Slot;

#define TIGHTSHIP_SLOT(NUMBER, LEFT, RIGHT)                                                        \
    template <> struct Slot<NUMBER> {                                                              \
        static void clear() {                                                                      \
            _tile_zero(LEFT);                                                                      \
            _tile_zero(RIGHT);                                                                     \
        }                                                                                          \
        static void add(const char *rows, int64_t bytes, const char *columns, int64_t half) {      \
            _tile_loadd(6, columns, kLine);                                                        \
            _tile_loadd(7, columns + half, kLine);                                                 \
            _tile_loadd(4, rows + 2 * kSide * bytes, bytes);                                       \
            _tile_dpbf16ps(LEFT, 4, 6);                                                            \
            _tile_dpbf16ps(RIGHT, 4, 7);                                                           \
            _tile_loadd(5, rows + kSide * bytes, bytes);                                           \
            _tile_dpbf16ps(LEFT, 5, 6);                                                            \
            _tile_dpbf16ps(RIGHT, 5, 7);                                                           \
            _tile_loadd(4, rows, bytes);                                                           \
            _tile_dpbf16ps(LEFT, 4, 6);                                                            \
            _tile_dpbf16ps(RIGHT, 4, 7);                                                           \
        }                                                                                          \
        static void take(float *left, float *right) {                                              \
            _tile_stored(LEFT, left, kLine);                                                       \
            _tile_stored(RIGHT, right, kLine);                                                     \
        }                                                                                          \
    }

TIGHTSHIP_SLOT(0, 0, 1);
TIGHTSHIP_SLOT(1, 2, 3);

#undef TIGHTSHIP_SLOT

/// Columns of two tiles: pairs [step][half], and scales [half][block][column].
struct Columns {
    const char *pairs;
    const float *scales, *zeros; ///< zeros null for none
};

/// Sums 16 rows by 32 columns; the tiles of one block are in work while those of another are
/// scaled.
class TileSums {
  public:
    TileSums(const BlockTask &task, const Rows &rows, const Columns &columns)
        : rows_(rows), columns_(columns), blocks_(task.blocks), depth_(depth_of(task.format)),
          steps_(task.format.block / depth_) {}

    void run() {
        for (int64_t block = 0; block < blocks_ + 2; block += 2) {
            turn<0>(block);
            turn<1>(block + 1);
        }
        if (columns_.zeros != nullptr)
            add_zeros();
    }

    Vector sums[kHalves][kSide] = {};

  private:
    template <int kSlot> void turn(int64_t block) {
        const int64_t done = block - 2;
        const bool is_done = done >= 0 && done < blocks_;
        if (is_done)
            Slot<kSlot>::take(tiles_[kSlot][0], tiles_[kSlot][1]);
        if (block < blocks_)
            begin<kSlot>(block);
        if (is_done)
            add(tiles_[kSlot], done);
    }

    template <int kSlot> void begin(int64_t block) {
        Slot<kSlot>::clear();
        const int64_t half = depth_ / 2 * kLine;
        for (int64_t step = block * steps_; step < (block + 1) * steps_; ++step)
            Slot<kSlot>::add(rows_.parts + step * kParts * kSide * depth_ * 2, depth_ * 2,
                             columns_.pairs + step * kHalves * half, half);
    }

    void add(const float (&tiles)[kHalves][kSide * kSide], int64_t block) {
        for (int64_t half = 0; half < kHalves; ++half) {
            const Vector scale = load(columns_.scales + (half * blocks_ + block) * kSide);
#pragma GCC unroll 16
            for (int64_t row = 0; row < kSide; ++row)
                sums[half][row] += load(tiles[half] + row * kSide) * scale;
        }
    }

    void add_zeros() {
        for (int64_t half = 0; half < kHalves; ++half)
            for (int64_t block = 0; block < blocks_; ++block) {
                const Vector zeros = load(columns_.zeros + (half * blocks_ + block) * kSide);
                for (int64_t row = 0; row < kSide; ++row)
                    sums[half][row] += zeros * rows_.sums[block * kSide + row];
            }
    }

    Rows rows_;
    Columns columns_;
    int64_t blocks_, depth_, steps_;
    alignas(64) float tiles_[2][kHalves][kSide * kSide];
};

template <int Bits> void multiply_pairs(const BlockTask &task) {
    const Decoder<Bits> decoder(task.format);
    const int64_t depth = depth_of(task.format), floats = kSide * task.blocks;
    char *pairs = task.scratch;
    auto *scales =
        reinterpret_cast<float *>(pairs + kHalves * kSide * 2 * task.blocks * task.format.block);
    const bool has_zeros = task.format.zeros != BlockZeros::kMiddle;
    float *zeros = has_zeros ? scales + kHalves * floats : nullptr;
    for (int64_t column = task.first_column; column < task.column_end; column += kHalves * kSide) {
        for (int64_t half = 0; half < kHalves; ++half) {
            const int64_t after = column + half * kSide, left = task.column_end - after;
            const int64_t first = left > 0 ? after : column;
            const int64_t count = left <= 0 ? 1 : left < kSide ? left : kSide;
            const Sixteen from(task.matrix.quants + first * task.format.quants_row,
                               task.format.quants_row, count);
            unpack_pairs<Bits>(from, task.blocks * decoder.bytes, decoder.sign, depth,
                               pairs + half * depth / 2 * kLine);
            transpose_scales<Bits>(task, decoder, first, count, scales + half * floats,
                                   has_zeros ? zeros + half * floats : nullptr);
        }
        see_stores(pairs);
        for (int64_t row = 0; row < task.rows; row += kSide) {
            TileSums tile(task, Rows(task, row), {pairs, scales, zeros});
            tile.run();
            write(task, row, column, tile.sums[0]);
            if (column + kSide < task.column_end)
                write(task, row, column + kSide, tile.sums[1]);
        }
    }
}

} // namespace

void split_exact(const BlockTask &task, int64_t first_row, int64_t row_end) {
    for (int64_t row = first_row; row < row_end; ++row)
        split_row(task, row);
}

void multiply_exact(const BlockTask &task) {
    const int64_t depth = depth_of(task.format);
    alignas(64) const Configuration configuration(2 * depth, depth / 2);
    see_stores(&configuration);
    _tile_loadconfig(&configuration);
    if (task.format.bits == 8)
        multiply_pairs<8>(task);
    else if (task.format.bits == 4)
        multiply_pairs<4>(task);
    else
        multiply_pairs<2>(task);
    _tile_release();
}

} // namespace tightship::kernels::amx

#else

namespace tightship::kernels::amx {

void split_exact(const BlockTask &, int64_t, int64_t) {}
void multiply_exact(const BlockTask &) {}

} // namespace tightship::kernels::amx

#endif
