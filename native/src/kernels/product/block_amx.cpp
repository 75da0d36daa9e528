#include "block_task.hpp"

#ifdef __AMX_INT8__

#define TIGHTSHIP_ISA amx
#define TIGHTSHIP_VECTOR_BYTES 64
#include "block_rounding.hpp"
#include "block_tiles.hpp"

namespace tightship::kernels::amx {

namespace {

constexpr int64_t kSums = kSide * kSide;

/// Sixteen rows of activations in int8: the numbers [step][row], and scales and sums of blocks
/// [block][row].
struct Rows {
    Rows(const BlockTask &task, int64_t row)
        : numbers(task.shared + row / kSide * kSide * task.shared_row),
          scales(reinterpret_cast<float *>(numbers + kSide * task.blocks * task.format.block)),
          sums(scales + kSide * task.blocks) {}

    char *numbers;
    float *scales, *sums;
};

/// Writer of one row's integers to tiles, in the order of unpacked quants.
class TileWriter {
  public:
    TileWriter(const BlockTask &task, int64_t row)
        : to_(Rows(task, row).numbers), place_(row % kSide), step_(step_of(task.format)),
          parts_(8 / task.format.bits) {}

    void put(Ints numbers) {
        _mm_storeu_si128(reinterpret_cast<__m128i *>(numbers_ + count_),
                         _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(numbers)));
        count_ += kWidth;
        if (count_ == kUnit * parts_)
            end_unit();
    }

  private:
    void end_unit() {
        char *to = to_ + done_ / step_ * step_ * kSide + place_ * step_ + done_ % step_;
        if (parts_ == 1)
            __builtin_memcpy(to, numbers_, kUnit);
        else if (parts_ == 2)
            separate_pairs(to);
        else
            for (int64_t part = 0; part < parts_; ++part)
                for (int64_t byte = 0; byte < kUnit; ++byte)
                    *to++ = numbers_[byte * parts_ + part];
        done_ += count_;
        count_ = 0;
    }

    /// Writes the first number of each pair, then the second ones.
    void separate_pairs(char *to) const {
        const __m256i first_then_second =
            _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8,
                             10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
        const auto *from = reinterpret_cast<const __m256i *>(numbers_);
        const __m256i halves = _mm256_shuffle_epi8(_mm256_loadu_si256(from), first_then_second);
        constexpr int kOuterThenInner = 0xD8; // quarters 0, 2, 1, 3
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(to),
                            _mm256_permute4x64_epi64(halves, kOuterThenInner));
    }

    char *to_;
    int64_t place_, step_, parts_, done_ = 0, count_ = 0;
    char numbers_[kUnit * 4];
};

void round_row(const BlockTask &task, int64_t row) {
    const Rows to(task, row);
    TileWriter writer(task, row);
    round_blocks(task, row, writer, to.scales + row % kSide, to.sums + row % kSide, kSide);
    for (int64_t block = 0; block < task.blocks; ++block)
        to.sums[block * kSide + row % kSide] *= to.scales[block * kSide + row % kSide];
}

/// Adds a tile of integer sums, scaled, to the sums of its rows.
inline void add_tile(const int32_t *tile, const float *scales, const float *given,
                     Vector (&sums)[kSide]) {
    const Vector scale = load(scales);
#pragma GCC unroll 16
    for (int64_t row = 0; row < kSide; ++row)
        sums[row] += _mm512_cvtepi32_ps(_mm512_load_si512(tile + row * kSide)) * scale * given[row];
}

/// Columns of a tile: quants as signed bytes, and scales.
struct Columns {
    const char *numbers;
    const float *scales, *zeros; ///< zeros null for none
};

/// A tile of sums, and the tiles that it multiplies. GCC 12 takes their numbers as text only.
template <int Number> struct Slot;

#define TIGHTSHIP_SLOT(SUMS, ROWS, COLUMNS)                                                        \
    template <> struct Slot<SUMS> {                                                                \
        static void clear() { _tile_zero(SUMS); }                                                  \
        static void add(const char *rows, int64_t step, const char *columns) {                     \
            _tile_loadd(ROWS, rows, step);                                                         \
            _tile_loadd(COLUMNS, columns, kLine);                                                  \
            _tile_dpbssd(SUMS, ROWS, COLUMNS);                                                     \
        }                                                                                          \
        static void take(int32_t *to) { _tile_stored(SUMS, to, kLine); }                           \
    }

TIGHTSHIP_SLOT(0, 4, 6);
TIGHTSHIP_SLOT(1, 5, 7);
TIGHTSHIP_SLOT(2, 4, 6);
TIGHTSHIP_SLOT(3, 5, 7);

#undef TIGHTSHIP_SLOT

/// Sums 16 rows by 16 columns. Four tiles of integers are in work at a time, because one takes
/// long: the one that is stored was begun four blocks ago.
class TileSums {
  public:
    TileSums(const BlockTask &task, const Rows &rows, const Columns &columns)
        : rows_(rows), columns_(columns), blocks_(task.blocks), step_(step_of(task.format)),
          steps_(task.format.block / step_) {}

    void run(Vector (&sums)[kSide]) {
        int64_t block = 0;
        for (; block < blocks_ + 4; block += 4) {
            turn<0>(block, sums);
            turn<1>(block + 1, sums);
            turn<2>(block + 2, sums);
            turn<3>(block + 3, sums);
        }
        if (columns_.zeros != nullptr)
            add_zeros(sums);
    }

  private:
    /// Stores the block that slot `kSlot` worked at, begins another, and adds what was stored.
    template <int kSlot> void turn(int64_t block, Vector (&sums)[kSide]) {
        const int64_t done = block - 4;
        const bool is_done = done >= 0 && done < blocks_;
        if (is_done)
            Slot<kSlot>::take(tile_[kSlot]);
        if (block < blocks_)
            begin<kSlot>(block);
        if (is_done)
            add_tile(tile_[kSlot], columns_.scales + done * kSide, rows_.scales + done * kSide,
                     sums);
    }

    template <int kSlot> void begin(int64_t block) {
        Slot<kSlot>::clear();
        const int64_t bytes = step_ * kSide;
        for (int64_t step = block * steps_; step < (block + 1) * steps_; ++step)
            Slot<kSlot>::add(rows_.numbers + step * bytes, step_, columns_.numbers + step * bytes);
    }

    void add_zeros(Vector (&sums)[kSide]) const {
        for (int64_t block = 0; block < blocks_; ++block) {
            const Vector zeros = load(columns_.zeros + block * kSide);
#pragma GCC unroll 16
            for (int64_t row = 0; row < kSide; ++row)
                sums[row] += zeros * rows_.sums[block * kSide + row];
        }
    }

    Rows rows_;
    Columns columns_;
    int64_t blocks_, step_, steps_;
    alignas(64) int32_t tile_[4][kSums];
};

template <int Bits> void multiply(const BlockTask &task) {
    const Decoder<Bits> decoder(task.format);
    char *numbers = task.scratch;
    auto *scales = reinterpret_cast<float *>(numbers + kSide * task.blocks * task.format.block);
    const bool has_zeros = task.format.zeros != BlockZeros::kMiddle;
    float *zeros = has_zeros ? scales + kSide * task.blocks : nullptr;
    const int64_t bytes = task.blocks * decoder.bytes;
    for (int64_t column = task.first_column; column < task.column_end; column += kSide) {
        const int64_t left = task.column_end - column, count = left < kSide ? left : kSide;
        const Sixteen from(task.matrix.quants + column * task.format.quants_row,
                           task.format.quants_row, count);
        char *to = numbers;
        for (int64_t at = 0; at < bytes; at += kUnit)
            to = unpack<Bits>(from, at, decoder, to);
        transpose_scales<Bits>(task, decoder, column, count, scales, zeros);
        see_stores(numbers);
        for (int64_t row = 0; row < task.rows; row += kSide) {
            Vector sums[kSide] = {};
            TileSums(task, Rows(task, row), {numbers, scales, zeros}).run(sums);
            write(task, row, column, sums);
        }
    }
}

} // namespace

void round_to_int8(const BlockTask &task, int64_t first_row, int64_t row_end) {
    for (int64_t row = first_row; row < row_end; ++row)
        round_row(task, row);
    if (row_end == task.rows) // denormals that happen to lie there would take long
        for (int64_t row = row_end; row % kSide != 0; ++row)
            for (int64_t block = 0; block < task.blocks; ++block)
                Rows(task, row).scales[block * kSide + row % kSide] =
                    Rows(task, row).sums[block * kSide + row % kSide] = 0.0F;
}

void multiply_int8(const BlockTask &task) {
    const int64_t step = step_of(task.format);
    alignas(64) const Configuration configuration(step, step / 4);
    see_stores(&configuration);
    _tile_loadconfig(&configuration);
    if (task.format.bits == 8)
        multiply<8>(task);
    else if (task.format.bits == 4)
        multiply<4>(task);
    else
        multiply<2>(task);
    _tile_release();
}

} // namespace tightship::kernels::amx

#else

namespace tightship::kernels::amx {

void round_to_int8(const BlockTask &, int64_t, int64_t) {}
void multiply_int8(const BlockTask &) {}

} // namespace tightship::kernels::amx

#endif
