/// Operators whose every element depends on those at its own place.
#pragma once

#include "tightship/kernel.hpp"
#include "tightship/kernels/element_type.hpp"
#include "tightship/kernels/loop_nest.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace tightship::kernels {

/// What turns dense rows into a dense row. `apply(code, inputs, output, length, parameters)`;
/// the output may be one of the inputs.
struct Operation {
    using Apply = void (*)(int code, const char *const *inputs, char *output, int64_t length,
                           const double *parameters);
    Apply apply;
    int code;         ///< which of the operators that `apply` knows
    ElementType work; ///< of inputs; a condition is bool
    ElementType result;
};

constexpr size_t kParameters = 3;

/// Results from which on caches have nothing of the beginning any more when the end is written. A
/// plain write reads each line from memory only to overwrite it.
constexpr int64_t kStreamedBytes = int64_t{32} << 20;
constexpr int64_t kLineBytes = 64;
constexpr size_t kFoldedOperands = 8;

/// One operator over inputs that broadcast to `shape`; operands: inputs, output.
struct ElementwiseSpec {
    std::string_view name;          ///< ONNX's, or one that elementwise.cpp adds
    std::vector<ElementType> types; ///< of inputs, then of the output
    Dims shape;
    std::vector<Dims> strides;      ///< bytes, of inputs, then of the output
    std::vector<double> parameters; ///< at most kParameters
};

/// Null where no kernel covers the operator with these types.
std::shared_ptr<const Kernel> elementwise(const ElementwiseSpec &spec);

/// By name and the type of the first input; each is nothing where a family lacks it.
std::optional<Operation> unary_operation(std::string_view name, ElementType type);
std::optional<Operation> unary_integer_operation(std::string_view name, ElementType type);
std::optional<Operation> unary_library_operation(std::string_view name, ElementType work);
std::optional<Operation> binary_float_operation(std::string_view name, ElementType type);
std::optional<Operation> binary_integer_operation(std::string_view name, ElementType type);
std::optional<Operation> compare_operation(std::string_view name, ElementType type);
/// What writes around the caches, to outputs aligned to lines that are none of its inputs; null
/// where there is none for this processor.
Operation::Apply streamed_operation(std::string_view name, ElementType type);
std::optional<Operation> choose_operation(std::string_view name, ElementType type);

} // namespace tightship::kernels
