/// Operators on tensors whose shapes only a run knows.
///
/// Each run makes the kernel for the shapes that come, which takes about as long as a call of a
/// Python function.
#pragma once

#include "tightship/sized/tensor.hpp"

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace tightship::kernels {

/// Operands of a step in the order of its node; null for one that is left out.
using Operands = std::span<const Tensor *const>;
using Results = std::span<Tensor>;

/// Operator of a node; immutable, may run in several threads at once.
class SizedOperator {
  public:
    virtual ~SizedOperator() = default;

    /// Computes all results from tensors. Returns false, or throws, for operands that it leaves to
    /// another kernel.
    virtual bool run(Operands operands, Results results, const TensorRoom &room,
                     int threads) const = 0;
};

/// Attributes of a node by the operator's own order.
struct SizedSettings {
    std::vector<int64_t> integers;
    std::vector<double> numbers;
};

using SizedPointer = std::shared_ptr<const SizedOperator>;

/// Makes an operator by its name; null if there is none. Throws std::invalid_argument if settings
/// are missing.
SizedPointer sized_operator(std::string_view name, const SizedSettings &settings);

/// Find an operator among those of a family; null if it lacks the name.
SizedPointer sized_elementwise(std::string_view name, const SizedSettings &settings);
SizedPointer sized_shape(std::string_view name, const SizedSettings &settings);
SizedPointer sized_movement(std::string_view name, const SizedSettings &settings);
SizedPointer sized_indexing(std::string_view name, const SizedSettings &settings);
SizedPointer sized_reduction(std::string_view name, const SizedSettings &settings);
SizedPointer sized_detection(std::string_view name, const SizedSettings &settings);
SizedPointer sized_convolution(std::string_view name, const SizedSettings &settings);
SizedPointer sized_product(std::string_view name, const SizedSettings &settings);

/// Operator that a function computes: `function(settings, operands, results, room, threads)`.
using SizedFunction = bool (*)(const SizedSettings &, Operands, Results, const TensorRoom &, int);

/// Row of a family's table: a name, its function, and the settings that it needs.
struct SizedRow {
    std::string_view name;
    SizedFunction function;
    size_t integers = 0, numbers = 0;
};

/// Makes the operator of a row; null if no row has the name.
SizedPointer sized_of(std::span<const SizedRow> rows, std::string_view name,
                      const SizedSettings &settings);

/// Returns the operand at a place; null if it is left out.
inline const Tensor *operand(Operands operands, size_t place) {
    return place < operands.size() ? operands[place] : nullptr;
}

/// Returns an axis counted from the front; nothing if it is outside the rank.
inline std::optional<size_t> axis_of(int64_t axis, size_t rank) {
    const auto most = static_cast<int64_t>(rank);
    if (axis < -most || axis >= most)
        return std::nullopt;
    return static_cast<size_t>(axis < 0 ? axis + most : axis);
}

/// Returns the elements of a tensor of int32 or int64; nothing for other types.
std::optional<std::vector<int64_t>> integers_of(const Tensor &tensor);

/// Number of elements of a part of a shape.
inline int64_t element_count(Shape shape) {
    int64_t product = 1;
    for (const int64_t length : shape)
        product *= length;
    return product;
}

} // namespace tightship::kernels
