/// Operators whose elements depend only on input elements at the same position.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/element_type.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace tightship::kernels {

/// Function from dense rows to a dense row: `apply(code, inputs, output, length, parameters)`;
/// the output may be one of the inputs.
struct Operation {
    using Apply = void (*)(int code, const char *const *inputs, char *output, int64_t length,
                           const double *parameters);
    Apply apply;
    int code;         ///< number of the operator among those of `apply`
    ElementType work; ///< of inputs; a condition is bool
    ElementType result;
};

constexpr size_t kParameters = 3;

/// Bytes of a result from which its beginning has left the caches when its end is written. Plain
/// writes would read each line from memory only to overwrite it.
constexpr int64_t kStreamedBytes = int64_t{32} << 20;
constexpr int64_t kLineBytes = 64;
constexpr size_t kFoldedOperands = 8;

/// Operator on inputs that broadcast to `shape`; operands: inputs, output.
struct ElementwiseSpec {
    std::string_view name;          ///< ONNX's, or one that elementwise.cpp adds
    std::vector<ElementType> types; ///< of inputs, then of the output
    Dims shape;
    std::vector<Dims> strides;      ///< bytes, of inputs, then of the output
    std::vector<double> parameters; ///< at most kParameters
};

/// Makes a kernel; null if none covers the operator with these types.
std::shared_ptr<const Kernel> elementwise(const ElementwiseSpec &spec);

/// Finds the function of an operator on dense rows of `types`: of inputs, of which a condition is
/// bool, then of the output. Nothing if elements would have to be converted.
std::optional<Operation> dense_operation(std::string_view name, std::span<const ElementType> types);

/// Names of all kernels for any types.
std::vector<std::string_view> elementwise_names();

using Names = std::span<const std::string_view>;
/// Names that each family has.
Names unary_names();
Names unary_integer_names();
Names unary_library_names();
Names class_names();
Names binary_float_names();
Names binary_integer_names();
Names logic_names();
Names compare_names();

/// Find an operation by its name and the type of the first input; nothing if a family lacks it.
std::optional<Operation> unary_operation(std::string_view name, ElementType type);
std::optional<Operation> unary_integer_operation(std::string_view name, ElementType type);
std::optional<Operation> unary_library_operation(std::string_view name, ElementType work);
std::optional<Operation> binary_float_operation(std::string_view name, ElementType type);
std::optional<Operation> binary_integer_operation(std::string_view name, ElementType type);
std::optional<Operation> compare_operation(std::string_view name, ElementType type);
/// Finds a function that writes around the caches, to outputs that are aligned to lines and not
/// among its inputs; null if this processor has none.
Operation::Apply streamed_operation(std::string_view name, ElementType type);
std::optional<Operation> choose_operation(std::string_view name, ElementType type);

} // namespace tightship::kernels
