#include "encoded_scales.hpp"
#include "encoded_task.hpp"

#include "tightship/kernels/element_type.hpp"
#include "tightship/kernels/item.hpp"

#include <bit>

namespace tightship::kernels {

namespace {

float half_at(const char *from) {
    return widened(load<Float16>(from));
}

const uint8_t *bytes_at(const char *from) {
    return reinterpret_cast<const uint8_t *>(from);
}

void decode_halves(const char *from, float *to) {
    for (int64_t index = 0; index < 32; ++index)
        to[index] = half_at(from + 2 * index);
}

void decode_bfloats(const char *from, float *to) {
    for (int64_t index = 0; index < 32; ++index)
        to[index] = std::bit_cast<float>(uint32_t{load<uint16_t>(from + 2 * index)} << 16);
}

/// Decodes 32 integers of four bits, and a fifth each where `fifth` is set.
void decode_32(const uint8_t *quants, uint32_t fifth, float scale, float least, float *to) {
    for (int index = 0; index < 32; ++index) {
        const int low = index < 16 ? quants[index] & 15 : quants[index - 16] >> 4;
        const int quant = low | static_cast<int>(fifth >> index & 1) << 4;
        to[index] = static_cast<float>(quant) * scale + least;
    }
}

void decode_q4_1(const char *from, float *to) {
    decode_32(bytes_at(from + 4), 0, half_at(from), half_at(from + 2), to);
}

void decode_q5_0(const char *from, float *to) {
    const float scale = half_at(from);
    decode_32(bytes_at(from + 6), load<uint32_t>(from + 2), scale, -16 * scale, to);
}

void decode_q5_1(const char *from, float *to) {
    decode_32(bytes_at(from + 8), load<uint32_t>(from + 4), half_at(from), half_at(from + 2), to);
}

/// Decodes 256 integers of four bits, and a fifth each unless `fifths` is null.
void decode_256(const char *from, const uint8_t *fifths, const uint8_t *quants, float *to) {
    const float scale = half_at(from), least = half_at(from + 2);
    for (int group = 0; group < 8; ++group) {
        const SixBits by = six_bits(bytes_at(from + 4), group);
        const float factor = scale * static_cast<float>(by.factor);
        const float below = least * static_cast<float>(by.least);
        for (int index = 0; index < 32; ++index) {
            const int byte = quants[group / 2 * 32 + index];
            int quant = group % 2 == 0 ? byte & 15 : byte >> 4;
            if (fifths != nullptr)
                quant |= (fifths[index] >> group & 1) << 4;
            to[group * 32 + index] = static_cast<float>(quant) * factor - below;
        }
    }
}

void decode_q4_k(const char *from, float *to) {
    decode_256(from, nullptr, bytes_at(from + 16), to);
}

void decode_q5_k(const char *from, float *to) {
    decode_256(from, bytes_at(from + 16), bytes_at(from + 48), to);
}

void decode_q6_k(const char *from, float *to) {
    const uint8_t *lower = bytes_at(from), *upper = bytes_at(from + 128);
    const auto *factors = reinterpret_cast<const int8_t *>(from + 192);
    const float scale = half_at(from + 208);
    for (int element = 0; element < 256; ++element) {
        const int half = element / 128, group = element % 128 / 32, index = element % 32;
        const int byte = lower[half * 64 + group % 2 * 32 + index];
        const int low = group < 2 ? byte & 15 : byte >> 4;
        const int high = upper[half * 32 + index] >> 2 * group & 3;
        const int group_of_16 = element / 16;
        const float factor = scale * static_cast<float>(factors[group_of_16]);
        to[element] = static_cast<float>((low | high << 4) - 32) * factor;
    }
}

constexpr void (*kDecoders[])(const char *, float *) = {
    decode_halves, decode_bfloats, decode_q4_1, decode_q5_0,
    decode_q5_1,   decode_q4_k,    decode_q5_k, decode_q6_k,
};

} // namespace

void decode_row(RowCode type, const char *from, int64_t depth, float *to) {
    const RowUnit unit = row_unit(type);
    for (int64_t element = 0; element < depth; element += unit.elements, from += unit.bytes)
        kDecoders[static_cast<size_t>(type)](from, to + element);
}

namespace {

/// Multiplies rows of float32, `row` bytes from one to the next, by encoded rows made real.
void multiply_real(const EncodedTask &encoded, const char *rows, int64_t row_bytes) {
    constexpr int64_t kSums = 16;
    const BlockTask &task = encoded.block;
    auto *weights = reinterpret_cast<float *>(task.scratch);
    for (int64_t column = task.first_column; column < task.column_end; ++column) {
        decode_row(encoded.type, task.matrix.quants + column * task.format.quants_row, task.depth,
                   weights);
        for (int64_t row = 0; row < task.rows; ++row) {
            const auto *from = reinterpret_cast<const float *>(rows + row * row_bytes);
            float sums[kSums] = {}, sum = task.bias == nullptr ? 0.0F : task.bias[column];
            for (int64_t index = 0; index < task.depth; index += kSums)
                for (int64_t lane = 0; lane < kSums; ++lane)
                    sums[lane] += from[index + lane] * weights[index + lane];
            for (const float each : sums)
                sum += each;
            reinterpret_cast<float *>(task.target + row * task.target_row)[column] = sum;
        }
    }
}

} // namespace

void portable::multiply_encoded(const EncodedTask &encoded) {
    multiply_real(encoded, encoded.block.source, encoded.block.source_row);
}

/// Writes rounded rows as float32.
void portable::round_encoded(const EncodedTask &encoded, int64_t first_row, int64_t row_end) {
    const BlockTask &task = encoded.block;
    const int64_t group = task.format.block;
    for (int64_t row = first_row; row < row_end; ++row) {
        const auto *from = reinterpret_cast<const float *>(task.source + row * task.source_row);
        auto *to = reinterpret_cast<float *>(task.shared + row * task.shared_row);
        int8_t numbers[32];
        for (int64_t first = 0; first < task.depth; first += group) {
            const float scale = round_block(from + first, group, group, numbers);
            for (int64_t index = 0; index < group; ++index)
                to[first + index] = scale * static_cast<float>(numbers[index]);
        }
    }
}

void portable::multiply_encoded_int8(const EncodedTask &encoded) {
    multiply_real(encoded, encoded.block.shared, encoded.block.shared_row);
}

} // namespace tightship::kernels
