#include "block_reader.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tightship::kernels::portable {

namespace {

constexpr int64_t kSums = 16;

float dot(const float *left, const float *right, int64_t count) {
    float sums[kSums] = {};
    int64_t index = 0;
    for (; index + kSums <= count; index += kSums)
        for (int64_t lane = 0; lane < kSums; ++lane)
            sums[lane] += left[index + lane] * right[index + lane];
    float sum = 0.0F;
    for (; index < count; ++index)
        sum += left[index] * right[index];
    for (const float each : sums)
        sum += each;
    return sum;
}

/// Returns the largest magnitude; NaN if there is a NaN.
float largest_of(const float *from, int64_t count) {
    uint32_t largest = 0;
    for (int64_t index = 0; index < count; ++index)
        largest = std::max(largest, std::bit_cast<uint32_t>(from[index]) & 0x7FFFFFFF);
    return std::bit_cast<float>(largest);
}

const float *source_of(const BlockTask &task, int64_t row) {
    return reinterpret_cast<const float *>(task.source + row * task.source_row);
}

void write(const BlockTask &task, int64_t row, int64_t column, float sum) {
    auto *target = reinterpret_cast<float *>(task.target + row * task.target_row);
    target[column] = task.bias == nullptr ? sum : sum + task.bias[column];
}

/// A row of activations in int8, and its blocks' scales and sums.
struct Rounded {
    explicit Rounded(const BlockTask &task, int64_t row)
        : numbers(reinterpret_cast<int8_t *>(task.shared + row * task.shared_row)),
          scales(reinterpret_cast<float *>(numbers + padded_depth(task.format, task.depth))),
          sums(scales + padded_blocks(task.format, task.depth)) {}

    int8_t *numbers;
    float *scales, *sums;
};

} // namespace

float round_block(const float *from, int64_t count, int64_t block, int8_t *to) {
    const float largest = largest_of(from, count);
    const bool is_finite = largest <= std::numeric_limits<float>::max();
    const bool is_zero = largest < 0x1p-119F || !is_finite;
    const float factor = is_zero ? 0.0F : 127.0F / largest;
    std::fill(to, to + block, int8_t{0});
    for (int64_t index = 0; index < count && !is_zero; ++index)
        to[index] = static_cast<int8_t>(std::nearbyint(from[index] * factor));
    if (!is_finite)
        return std::numeric_limits<float>::quiet_NaN();
    return is_zero ? 0.0F : largest / 127.0F;
}

void multiply_exact(const BlockTask &task) {
    auto *weights = reinterpret_cast<float *>(task.scratch);
    for (int64_t column = task.first_column; column < task.column_end; ++column) {
        read_block_row(task.format, task.matrix, column, task.depth, weights);
        for (int64_t row = 0; row < task.rows; ++row)
            write(task, row, column, dot(source_of(task, row), weights, task.depth));
    }
}

void round_to_int8(const BlockTask &task, int64_t first_row, int64_t row_end) {
    const int64_t length = task.format.block;
    for (int64_t row = first_row; row < row_end; ++row) {
        const Rounded to(task, row);
        const float *from = source_of(task, row);
        for (int64_t block = 0; block < task.blocks; ++block) {
            int8_t *numbers = to.numbers + block * length;
            const int64_t count = std::min(length, task.depth - block * length);
            to.scales[block] = round_block(from + block * length, count, length, numbers);
            int64_t sum = 0;
            for (int64_t index = 0; index < count; ++index)
                sum += numbers[index];
            to.sums[block] = static_cast<float>(sum);
        }
    }
}

void multiply_int8(const BlockTask &task) {
    auto *weights = reinterpret_cast<int8_t *>(task.scratch);
    const int64_t length = task.format.block;
    for (int64_t column = task.first_column; column < task.column_end; ++column) {
        const BlockRow from(task.format, task.matrix, column);
        for (int64_t block = 0; block < task.blocks; ++block)
            from.read(block, length, weights + block * length);
        for (int64_t row = 0; row < task.rows; ++row) {
            const Rounded given(task, row);
            float total = 0.0F;
            for (int64_t block = 0; block < task.blocks; ++block) {
                int32_t sum = 0;
                for (int64_t index = block * length; index < (block + 1) * length; ++index)
                    sum += given.numbers[index] * weights[index];
                total += (static_cast<float>(sum) + from.zero(block) * given.sums[block]) *
                         (from.scale(block) * given.scales[block]);
            }
            write(task, row, column, total);
        }
    }
}

} // namespace tightship::kernels::portable
