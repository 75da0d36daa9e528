/// Convolutions of small images in plain layout, as the heads of detectors have them.
///
/// Rows of an image lie one behind the other with their padding, so that each tap of the kernel is
/// a shift of all positions at once. What the shifts make of the padding behind a row is dropped.
#include "tightship/cpu/clones.hpp"
#include "tightship/sized/operators.hpp"

#include <algorithm>
#include <cstring>

namespace tightship::kernels {

namespace {

using enum ElementType;

constexpr int64_t kProductsMax = 1 << 27; ///< multiplications from which oneDNN is worth its setup
constexpr int64_t kPositions = 16;
constexpr int64_t kOutputs = 4;

using Vector [[gnu::vector_size(kPositions * sizeof(float)), gnu::aligned(4)]] = float;

/// Weights (outputs, depth), and where in the image each element of the depth lies.
struct Taps {
    const float *weights;
    const int64_t *offsets;
    int64_t depth;
};

/// Computes sums (outputs, positions) of up to four outputs. REQUIRES: positions are a multiple of
/// 16, and the image has as many behind each offset.
TIGHTSHIP_CLONES void weigh(const Taps &taps, const float *image, int64_t outputs,
                            int64_t positions, float *sums) {
    const float *row[kOutputs];
    for (int64_t index = 0; index < kOutputs; ++index)
        row[index] = taps.weights + std::min(index, outputs - 1) * taps.depth;
    for (int64_t place = 0; place < positions; place += kPositions) {
        Vector each[kOutputs] = {};
        for (int64_t k = 0; k < taps.depth; ++k) {
            const Vector pixels =
                *reinterpret_cast<const Vector *>(image + taps.offsets[k] + place);
            for (int64_t index = 0; index < kOutputs; ++index)
                each[index] += row[index][k] * pixels;
        }
        for (int64_t index = 0; index < outputs; ++index)
            *reinterpret_cast<Vector *>(sums + index * positions + place) = each[index];
    }
}

int64_t rounded(int64_t positions) {
    return (positions + kPositions - 1) / kPositions * kPositions;
}

/// Float32 memory that is zero.
std::pair<float *, std::shared_ptr<const void>> zeros(int64_t count, const TensorRoom &room) {
    auto [bytes, held] = room.scratch(counted({count, int64_t{sizeof(float)}}));
    std::memset(bytes, 0, static_cast<size_t>(count) * sizeof(float));
    return {reinterpret_cast<float *>(bytes), std::move(held)};
}

bool are_images(Operands operands) {
    const Tensor &x = *operands[0], &weights = *operands[1];
    const Tensor *const bias = operand(operands, 2);
    return x.type == kFloat32 && weights.type == kFloat32 && x.rank == 4 && weights.rank == 4 &&
           weights.count() > 0 && x.lengths[1] > 0 && x.lengths[2] > 0 && x.lengths[3] > 0 &&
           (bias == nullptr || (bias->type == kFloat32 && bias->rank == 1));
}

/// Lengths of a convolution of stride 1; `height` and `width` are those of a padded image.
struct Window {
    int64_t channels, outputs, kernel_rows, kernel_columns, height, width, rows, columns;

    int64_t depth() const { return channels * kernel_rows * kernel_columns; }
    int64_t positions() const { return rounded((rows - 1) * width + columns); }
    /// Elements of an image, and those that a tap of the last position may read behind it.
    int64_t image() const { return channels * height * width + kPositions; }
};

/// Writes the results of one image (outputs, rows, columns).
void convolve(const Window &window, const Taps &taps, const float *image, const float *bias,
              float *sums, float *target) {
    for (int64_t first = 0; first < window.outputs; first += kOutputs) {
        const int64_t outputs = std::min(kOutputs, window.outputs - first);
        weigh({taps.weights + first * taps.depth, taps.offsets, taps.depth}, image, outputs,
              window.positions(), sums);
        for (int64_t index = 0; index < outputs; ++index) {
            const float added = bias == nullptr ? 0 : bias[first + index];
            float *to = target + (first + index) * window.rows * window.columns;
            for (int64_t row = 0; row < window.rows; ++row, to += window.columns) {
                const float *from = sums + index * window.positions() + row * window.width;
                for (int64_t column = 0; column < window.columns; ++column)
                    to[column] = from[column] + added;
            }
        }
    }
}

/// Convolution of stride 1 and one group; settings: dilations, then pads as ONNX orders them.
bool convolution(const SizedSettings &settings, Operands operands, Results results,
                 const TensorRoom &room, int) {
    if (!are_images(operands))
        return false;
    const Tensor &x = *operands[0], &weights = *operands[1];
    const Tensor *const bias = operand(operands, 2);
    const auto &given = settings.integers;
    Window window{x.lengths[1],
                  weights.lengths[0],
                  weights.lengths[2],
                  weights.lengths[3],
                  x.lengths[2] + given[2] + given[4],
                  x.lengths[3] + given[3] + given[5],
                  0,
                  0};
    window.rows = window.height - (window.kernel_rows - 1) * given[0];
    window.columns = window.width - (window.kernel_columns - 1) * given[1];
    if (*std::ranges::min_element(given) < 0 || weights.lengths[1] != window.channels ||
        window.rows < 1 || window.columns < 1 ||
        (bias != nullptr && bias->lengths[0] != window.outputs) ||
        counted({x.lengths[0], window.rows, window.columns, weights.count()}) > kProductsMax)
        return false;
    const int64_t shape[] = {x.lengths[0], window.outputs, window.rows, window.columns};
    results[0] = room.make(kFloat32, shape);
    const auto [image, held] = zeros(window.image(), room);
    const auto [sums, also_held] = zeros(kOutputs * window.positions(), room);
    std::vector<int64_t> offsets;
    for (int64_t channel = 0; channel < window.channels; ++channel)
        for (int64_t row = 0; row < window.kernel_rows; ++row)
            for (int64_t column = 0; column < window.kernel_columns; ++column)
                offsets.push_back((channel * window.height + row * given[0]) * window.width +
                                  column * given[1]);
    const float *source = x.as<float>();
    for (int64_t each = 0; each < x.lengths[0]; ++each) {
        for (int64_t row = 0; row < window.channels * x.lengths[2]; ++row) {
            const int64_t channel = row / x.lengths[2];
            const int64_t place = row % x.lengths[2] + given[2] + channel * window.height;
            std::memcpy(image + place * window.width + given[3], source,
                        static_cast<size_t>(x.lengths[3]) * sizeof(float));
            source += x.lengths[3];
        }
        convolve(window, {weights.as<float>(), offsets.data(), window.depth()}, image,
                 bias == nullptr ? nullptr : bias->as<float>(), sums,
                 results[0].as<float>() + each * window.outputs * window.rows * window.columns);
    }
    return true;
}

/// Writes the square of results that an output has of each position: (rows, columns) positions of
/// squares (kernel rows, kernel columns).
void spread(const Window &window, const float *sums, const float *bias, float *target) {
    const int64_t square = window.kernel_rows * window.kernel_columns;
    for (int64_t output = 0; output < window.outputs; ++output)
        for (int64_t row = 0; row < window.rows; ++row)
            for (int64_t tap = 0; tap < square; ++tap) {
                const float *from =
                    sums + (output * square + tap) * window.positions() + row * window.columns;
                const int64_t tap_row = tap / window.kernel_columns;
                float *to = target + ((output * window.rows + row) * window.kernel_rows + tap_row) *
                                         window.columns * window.kernel_columns;
                to += tap % window.kernel_columns;
                for (int64_t column = 0; column < window.columns; ++column)
                    to[column * window.kernel_columns] =
                        from[column] + (bias == nullptr ? 0 : bias[output]);
            }
}

/// Transposed convolution of one group whose stride is its kernel, so that no two results meet.
bool transposed(const SizedSettings &settings, Operands operands, Results results,
                const TensorRoom &room, int) {
    if (!are_images(operands))
        return false;
    const Tensor &x = *operands[0], &weights = *operands[1];
    const Tensor *const bias = operand(operands, 2);
    const Window window{x.lengths[1], weights.lengths[1], weights.lengths[2], weights.lengths[3],
                        x.lengths[2], x.lengths[3],       x.lengths[2],       x.lengths[3]};
    const int64_t square = window.kernel_rows * window.kernel_columns;
    if (weights.lengths[0] != window.channels || settings.integers[0] != window.kernel_rows ||
        settings.integers[1] != window.kernel_columns ||
        (bias != nullptr && bias->lengths[0] != window.outputs) ||
        counted({x.count(), window.outputs, square}) > kProductsMax)
        return false;
    const int64_t shape[] = {x.lengths[0], window.outputs, window.rows * window.kernel_rows,
                             window.columns * window.kernel_columns};
    results[0] = room.make(kFloat32, shape);
    const int64_t outputs = window.outputs * square, pixels = window.rows * window.columns;
    const auto [image, held] = zeros(window.image(), room);
    const auto [sums, also_held] = zeros(outputs * window.positions(), room);
    const auto [turned, still_held] = zeros(outputs * window.channels, room);
    std::vector<int64_t> offsets;
    for (int64_t channel = 0; channel < window.channels; ++channel) {
        offsets.push_back(channel * pixels);
        for (int64_t output = 0; output < outputs; ++output)
            turned[output * window.channels + channel] =
                weights.as<float>()[channel * outputs + output];
    }
    for (int64_t each = 0; each < x.lengths[0]; ++each) {
        std::memcpy(image, x.as<float>() + each * window.channels * pixels,
                    static_cast<size_t>(window.channels * pixels) * sizeof(float));
        for (int64_t first = 0; first < outputs; first += kOutputs)
            weigh({turned + first * window.channels, offsets.data(), window.channels}, image,
                  std::min(kOutputs, outputs - first), window.positions(),
                  sums + first * window.positions());
        spread(window, sums, bias == nullptr ? nullptr : bias->as<float>(),
               results[0].as<float>() + each * outputs * pixels);
    }
    return true;
}

constexpr SizedRow kConvolutionRows[] = {{"Conv", convolution, 6},
                                         {"ConvTranspose", transposed, 2}};

} // namespace

SizedPointer sized_convolution(std::string_view name, const SizedSettings &settings) {
    return sized_of(kConvolutionRows, name, settings);
}

} // namespace tightship::kernels
