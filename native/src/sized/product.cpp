/// Products of few numbers, for which a library takes longer to begin than to compute.
#include "tightship/cpu/clones.hpp"
#include "tightship/sized/operators.hpp"

#include <algorithm>
#include <cstring>

namespace tightship::kernels {

namespace {

using enum ElementType;

constexpr int64_t kMultiplicationsMax = 1 << 18; ///< multiplications from which a library is faster
constexpr int64_t kColumns = 16;
constexpr int64_t kProductRowsAtOnce = 4;

using Vector [[gnu::vector_size(kColumns * sizeof(float)), gnu::aligned(4)]] = float;

/// Computes up to four rows of a panel: a (rows, depth), the panel (depth, 16), c (rows, 16).
TIGHTSHIP_CLONES void multiply_panel(const float *a, int64_t a_step, const float *panel, float *c,
                                     int64_t rows, int64_t depth) {
    const float *row[kProductRowsAtOnce];
    for (int64_t index = 0; index < kProductRowsAtOnce; ++index)
        row[index] = a + std::min(index, rows - 1) * a_step;
    Vector sums[kProductRowsAtOnce] = {};
    for (int64_t k = 0; k < depth; ++k) {
        const Vector columns = *reinterpret_cast<const Vector *>(panel + k * kColumns);
        for (int64_t index = 0; index < kProductRowsAtOnce; ++index)
            sums[index] += row[index][k] * columns;
    }
    for (int64_t index = 0; index < rows; ++index)
        *reinterpret_cast<Vector *>(c + index * kColumns) = sums[index];
}

/// Right operand: address, and steps in elements along its depth and its columns.
struct Right {
    const float *data;
    int64_t depth_step, column_step;
};

/// Copies 16 columns, zeros behind the last, so that each depth has them side by side.
void pack(const Right &b, int64_t depth, int64_t columns, float *panel) {
    if (columns < kColumns)
        std::fill_n(panel, depth * kColumns, 0.0F);
    if (b.column_step == 1) {
        for (int64_t k = 0; k < depth; ++k)
            std::memcpy(panel + k * kColumns, b.data + k * b.depth_step,
                        static_cast<size_t>(columns) * sizeof(float));
        return;
    }
    for (int64_t column = 0; column < columns; ++column)
        for (int64_t k = 0; k < depth; ++k)
            panel[k * kColumns + column] = b.data[column * b.column_step + k * b.depth_step];
}

struct Sizes {
    int64_t rows, depth, columns;
};

/// Computes c = a b, row-major but for the right operand. `panel` has room for 16 columns of it
/// and four rows of a result.
void multiply(const float *a, const Right &b, float *c, const Sizes &sizes, float *panel) {
    float *const few = panel + sizes.depth * kColumns;
    for (int64_t first = 0; first < sizes.columns; first += kColumns) {
        const int64_t columns = std::min(kColumns, sizes.columns - first);
        pack({b.data + first * b.column_step, b.depth_step, b.column_step}, sizes.depth, columns,
             panel);
        for (int64_t row = 0; row < sizes.rows; row += kProductRowsAtOnce) {
            const int64_t rows = std::min(kProductRowsAtOnce, sizes.rows - row);
            multiply_panel(a + row * sizes.depth, sizes.depth, panel, few, rows, sizes.depth);
            for (int64_t index = 0; index < rows; ++index)
                std::memcpy(c + (row + index) * sizes.columns + first, few + index * kColumns,
                            static_cast<size_t>(columns) * sizeof(float));
        }
    }
}

bool is_small(const Sizes &sizes, int64_t batch) {
    return counted({batch, sizes.rows, sizes.depth, sizes.columns}) <= kMultiplicationsMax;
}

std::pair<char *, std::shared_ptr<const void>> panel_of(const Sizes &sizes,
                                                        const TensorRoom &room) {
    return room.scratch((sizes.depth + kProductRowsAtOnce) * kColumns * int64_t{sizeof(float)});
}

/// MatMul of matrices, of which the right one may serve all matrices of the left operand.
bool matrix_product(const SizedSettings &, Operands operands, Results results,
                    const TensorRoom &room, int) {
    const Tensor &a = *operands[0], &b = *operands[1];
    if (a.type != kFloat32 || b.type != kFloat32 || a.rank < 2 || b.rank < 2)
        return false;
    const Shape outer = a.shape().first(a.rank - 2u), inner = b.shape().first(b.rank - 2u);
    const bool is_shared = inner.empty();
    const Sizes sizes{a.lengths[a.rank - 2u], a.lengths[a.rank - 1u], b.lengths[b.rank - 1u]};
    const int64_t batch = element_count(outer);
    if (b.lengths[b.rank - 2u] != sizes.depth || !is_small(sizes, batch) ||
        (!is_shared && !std::ranges::equal(outer, inner)))
        return false;
    Dims shape(a.shape().begin(), a.shape().end());
    shape.back() = sizes.columns;
    results[0] = room.make(kFloat32, shape);
    if (results[0].count() == 0)
        return true;
    const auto [panel, held] = panel_of(sizes, room);
    for (int64_t index = 0; index < batch; ++index) {
        const int64_t place = is_shared ? 0 : index * sizes.depth * sizes.columns;
        multiply(a.as<float>() + index * sizes.rows * sizes.depth,
                 {b.as<float>() + place, sizes.columns, 1},
                 results[0].as<float>() + index * sizes.rows * sizes.columns, sizes,
                 reinterpret_cast<float *>(panel));
    }
    return true;
}

/// Adds beta times an operand that broadcasts to the rows and columns of c; false if it does not.
bool add(const Tensor &added, float beta, float *c, const Sizes &sizes) {
    if (added.type != kFloat32 || added.rank > 2)
        return false;
    const int64_t columns = added.rank > 0 ? added.lengths[added.rank - 1u] : 1;
    const int64_t rows = added.rank > 1 ? added.lengths[0] : 1;
    if ((rows != 1 && rows != sizes.rows) || (columns != 1 && columns != sizes.columns))
        return false;
    const int64_t row_step = rows == 1 ? 0 : columns, step = columns == 1 ? 0 : 1;
    for (int64_t row = 0; row < sizes.rows; ++row)
        for (int64_t column = 0; column < sizes.columns; ++column)
            c[row * sizes.columns + column] +=
                beta * added.as<float>()[row * row_step + column * step];
    return true;
}

/// Gemm; settings: whether the right operand is transposed; alpha and beta.
bool general_product(const SizedSettings &settings, Operands operands, Results results,
                     const TensorRoom &room, int) {
    const Tensor &a = *operands[0], &b = *operands[1];
    if (a.type != kFloat32 || b.type != kFloat32 || a.rank != 2 || b.rank != 2)
        return false;
    const bool is_turned = settings.integers[0] != 0;
    const Sizes sizes{a.lengths[0], a.lengths[1], b.lengths[is_turned ? 0 : 1]};
    if (b.lengths[is_turned ? 1 : 0] != sizes.depth || !is_small(sizes, 1))
        return false;
    const int64_t shape[] = {sizes.rows, sizes.columns};
    results[0] = room.make(kFloat32, shape);
    if (results[0].count() == 0)
        return true;
    auto *const c = results[0].as<float>();
    const Right right{b.as<float>(), is_turned ? 1 : sizes.columns, is_turned ? sizes.depth : 1};
    const auto [panel, held] = panel_of(sizes, room);
    multiply(a.as<float>(), right, c, sizes, reinterpret_cast<float *>(panel));
    const auto alpha = static_cast<float>(settings.numbers[0]);
    for (int64_t index = 0; alpha != 1 && index < results[0].count(); ++index)
        c[index] *= alpha;
    const Tensor *const added = operand(operands, 2);
    return added == nullptr || add(*added, static_cast<float>(settings.numbers[1]), c, sizes);
}

constexpr SizedRow kProductRows[] = {{"MatMul", matrix_product}, {"Gemm", general_product, 1, 2}};

} // namespace

SizedPointer sized_product(std::string_view name, const SizedSettings &settings) {
    return sized_of(kProductRows, name, settings);
}

} // namespace tightship::kernels
