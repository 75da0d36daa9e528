#include "quantized_rows_task.hpp"

#include "cpu/this_cpu.hpp"
#include "tightship/kernels/reach.hpp"
#include "tightship/parallel.hpp"

#include <algorithm>
#include <cmath>

namespace tightship::kernels {

namespace {

constexpr int64_t kQuantizedGrain = 1 << 18; ///< multiply-adds that pay for a thread
constexpr int64_t kRowsOfTask = 48;          ///< rows of which a thread computes some columns
constexpr int64_t kNearWeights = 1 << 19;    ///< bytes of weights that stay in a near cache

float clamped_to(const QuantizedLimits &limits, float x) {
    return std::min(std::max(x, limits.low), limits.high);
}

uint8_t result_of(const QuantizedRowsTask &task, int64_t row, int64_t column) {
    const QuantizedRows &shape = *task.shape;
    const int64_t depth = shape.depth, first = column / 16 * 16;
    int32_t sum = 0;
    for (int64_t index = 0; index < depth; ++index) {
        const int64_t place = first * depth + index / 4 * 64 + (column - first) * 4 + index % 4;
        sum += task.source[row * depth + index] * task.weights[place];
    }
    float x = std::fma(static_cast<float>(sum), task.factors[column], task.terms[column]);
    if (shape.adds) {
        const uint8_t byte = task.addend[row * shape.columns + column];
        const float other = static_cast<float>(shape.is_addend_signed ? byte ^ 0x80 : byte);
        x = std::fma(clamped_to(shape.product, std::nearbyint(x)), shape.product_factor,
                     std::fma(other, shape.addend_factor, shape.shift));
    }
    return static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(clamped_to(shape.result, x))));
}

void multiply_singly(const QuantizedRowsTask &task, int64_t column, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
        for (int64_t each = column; each < column + kQuantizedColumns; ++each)
            task.target[row * task.shape->columns + each] = result_of(task, row, each);
}

QuantizedRowsLoop loop_of_this_cpu() {
#if defined(__x86_64__)
    if (has_dot_products())
        return vnni::multiply_quantized_rows;
#endif
    return multiply_singly;
}

/// Throws std::invalid_argument if numbers would overflow, or loops exceed an operand.
void check(const QuantizedRows &shape) {
    constexpr int64_t kDepthMax = (int64_t{1} << 31) / (255 * 128) - 1; // sums fit 32 bits
    counted({shape.rows, shape.columns, shape.depth}, 1);
    require(shape.depth <= kDepthMax, "a kernel's sums of bytes exceed 32 bits");
    require(shape.columns % kQuantizedColumns == 0 && shape.depth % kQuantizedDepth == 0,
            "a kernel rounds products of 64 columns and 4 bytes at a time");
    for (const QuantizedLimits &limits : {shape.result, shape.product})
        require(-256 <= limits.low && limits.low <= limits.high && limits.high <= 256,
                "a kernel rounds to 8 bits");
}

class QuantizedRowsProduct : public Kernel {
  public:
    explicit QuantizedRowsProduct(const QuantizedRows &shape)
        : shape_(shape), loop_(loop_of_this_cpu()) {}

    void run(std::span<char *const> operands, int threads) const override {
        const auto bytes = [&](size_t index) {
            return reinterpret_cast<uint8_t *>(operands[index]);
        };
        const auto floats = [&](size_t index) {
            return reinterpret_cast<const float *>(operands[index]);
        };
        uint8_t *target = bytes(operands_before_target());
        const QuantizedRowsTask task{
            &shape_,   bytes(0),  reinterpret_cast<const int8_t *>(operands[1]),
            floats(2), floats(3), shape_.adds ? bytes(4) : target,
            target};
        const int64_t parts = (shape_.rows + kRowsOfTask - 1) / kRowsOfTask;
        const int64_t blocks = shape_.columns / kQuantizedColumns;
        const int64_t work = kRowsOfTask * shape_.depth * kQuantizedColumns;
        // Rows are read once if all weights stay near; else each column's weights are read once.
        const bool rows_once = shape_.depth * shape_.columns <= kNearWeights;
        parallel_for(threads, parts * blocks, std::max<int64_t>(kQuantizedGrain / work, 1),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t index = begin; index < end; ++index) {
                             const int64_t part = rows_once ? index / blocks : index % parts;
                             const int64_t block = rows_once ? index % blocks : index / parts;
                             const int64_t first = part * kRowsOfTask;
                             loop_(task, block * kQuantizedColumns, first,
                                   std::min(first + kRowsOfTask, shape_.rows));
                         }
                     });
    }

    std::vector<Reach> reach() const override {
        const int64_t results = counted({shape_.rows, shape_.columns});
        std::vector<Reach> found{
            dense(shape_.rows * shape_.depth, 1), dense(shape_.columns * shape_.depth, 1),
            dense(shape_.columns, sizeof(float)), dense(shape_.columns, sizeof(float))};
        found.resize(operands_before_target() + 1, dense(results, 1));
        return found;
    }

  private:
    size_t operands_before_target() const { return shape_.adds ? 5 : 4; }

    QuantizedRows shape_;
    QuantizedRowsLoop loop_;
};

} // namespace

std::shared_ptr<const Kernel> quantized_rows(const QuantizedRows &shape) {
    check(shape);
    return std::make_shared<QuantizedRowsProduct>(shape);
}

} // namespace tightship::kernels
