#include "tightship/kernels/recurrent/recurrent.hpp"
#include "recorded.hpp"
#include "tightship/kernels/recipes.hpp"
#include "tightship/kernels/recurrent/recurrent_gradient.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

template <class Value, size_t kCount>
using Names = std::array<std::pair<std::string_view, Value>, kCount>;

constexpr Names<kernels::Cell, 4> kCells{{{"plain", kernels::Cell::kPlain},
                                          {"gru", kernels::Cell::kGru},
                                          {"linear_gru", kernels::Cell::kLinearGru},
                                          {"lstm", kernels::Cell::kLstm}}};

constexpr Names<kernels::Function, 10> kFunctions{
    {{"affine", kernels::Function::kAffine},
     {"elu", kernels::Function::kElu},
     {"hardsigmoid", kernels::Function::kHardSigmoid},
     {"leakyrelu", kernels::Function::kLeakyRelu},
     {"relu", kernels::Function::kRelu},
     {"scaledtanh", kernels::Function::kScaledTanh},
     {"sigmoid", kernels::Function::kSigmoid},
     {"softsign", kernels::Function::kSoftsign},
     {"tanh", kernels::Function::kTanh},
     {"thresholdedrelu", kernels::Function::kThresholdedRelu}}};

constexpr Names<kernels::RecurrentPart, kernels::kRecurrentParts> kParts{
    {{"reset_bias", kernels::RecurrentPart::kResetBias},
     {"lengths", kernels::RecurrentPart::kLengths},
     {"state", kernels::RecurrentPart::kState},
     {"cell_state", kernels::RecurrentPart::kCellState},
     {"peephole", kernels::RecurrentPart::kPeephole},
     {"scales", kernels::RecurrentPart::kScales},
     {"sequence", kernels::RecurrentPart::kSequence},
     {"last_state", kernels::RecurrentPart::kLastState},
     {"last_cell_state", kernels::RecurrentPart::kLastCellState}}};

constexpr Names<kernels::BackPart, kernels::kBackParts> kBackNames{
    {{"gates", kernels::BackPart::kGates},
     {"shares", kernels::BackPart::kShares},
     {"weights", kernels::BackPart::kWeights},
     {"bias", kernels::BackPart::kBias},
     {"states", kernels::BackPart::kStates},
     {"first_cell", kernels::BackPart::kFirstCell},
     {"gradient", kernels::BackPart::kGradient},
     {"last_gradient", kernels::BackPart::kLastGradient},
     {"last_cell_gradient", kernels::BackPart::kLastCellGradient},
     {"input_gates", kernels::BackPart::kInputGates},
     {"state_gates", kernels::BackPart::kStateGates},
     {"first_gradient", kernels::BackPart::kFirstGradient},
     {"first_cell_gradient", kernels::BackPart::kFirstCellGradient}}};

template <class Value, size_t kCount>
Value named(const Names<Value, kCount> &names, std::string_view name) {
    for (const auto &[known, value] : names)
        if (known == name)
            return value;
    throw std::invalid_argument("Unknown name `" + std::string(name) + "` in a recurrent layer.");
}

using Activations = std::vector<std::tuple<std::string_view, float, float>>;

kernels::RecurrentRule rule_of(std::string_view cell, const Activations &activations,
                               bool is_reversed, bool is_coupled, float limit) {
    kernels::RecurrentRule rule{named(kCells, cell), is_reversed, is_coupled, limit, {}};
    for (const auto &[name, alpha, beta] : activations)
        rule.activations.push_back({named(kFunctions, name), alpha, beta});
    return rule;
}

std::shared_ptr<const Kernel>
recurrent(const std::array<int64_t, 4> &sizes, const kernels::RecurrentRule &rule,
          const std::vector<std::string_view> &parts,
          const std::tuple<std::array<int64_t, 2>, std::array<int64_t, 3>, std::array<int64_t, 2>>
              &strides,
          bool is_narrow) {
    std::vector<kernels::RecurrentPart> present;
    for (const std::string_view part : parts)
        present.push_back(named(kParts, part));
    const auto &[gates, sequence, state] = strides;
    return kernels::recurrent({sizes[0], sizes[1], sizes[2], sizes[3]}, rule, present,
                              {gates, sequence, state}, is_narrow);
}

std::shared_ptr<const Kernel> recurrent_gradient(std::string_view cell,
                                                 const std::array<int64_t, 3> &sizes,
                                                 bool is_reversed, bool is_cut,
                                                 const std::vector<std::string_view> &parts) {
    std::vector<kernels::BackPart> present;
    for (const std::string_view part : parts)
        present.push_back(named(kBackNames, part));
    return kernels::recurrent_gradient(
        {named(kCells, cell), sizes[0], sizes[1], sizes[2], is_reversed, is_cut}, present);
}

std::shared_ptr<const Kernel> recurrent_weights(std::string_view cell, int64_t directions,
                                                int64_t hidden) {
    return kernels::recurrent_weights(named(kCells, cell), directions, hidden);
}

} // namespace

void recurrent_kernels(nb::class_<Kernel> &kernel) {
    nb::class_<kernels::RecurrentRule>(
        kernel, "RecurrentRule",
        "Rule of a recurrent layer; `cell` is plain, gru, linear_gru or lstm.")
        .def(
            "__init__",
            [](kernels::RecurrentRule *self, std::string_view cell, const Activations &activations,
               bool is_reversed, bool is_coupled, float limit) {
                new (self) kernels::RecurrentRule(
                    rule_of(cell, activations, is_reversed, is_coupled, limit));
            },
            "cell"_a, "activations"_a, "is_reversed"_a, "is_coupled"_a, "limit"_a,
            "Make a rule; `activations` are (name, alpha, beta) of one direction after another.");
    recorded(kernel).def_static(
        "recurrent", &recurrent, "sizes"_a, "rule"_a, "parts"_a, "strides"_a, "is_narrow"_a = false,
        "Make a recurrent layer. Operands: products of the inputs, packed weights of the state, "
        "the named parts, scratch. `sizes`: steps, batch, directions, hidden. `strides`: of "
        "products, sequence and states, in elements. `is_narrow`: weights are bfloat16, not "
        "float32.");
    recorded(kernel)
        .def_static("recurrent_gradient", &recurrent_gradient, "cell"_a, "sizes"_a, "is_reversed"_a,
                    "is_cut"_a, "parts"_a,
                    "Make the backward steps of a recurrent layer. Operands: the named parts, "
                    "scratch. `sizes`: steps, batch, hidden.")
        .def_static("recurrent_weights", &recurrent_weights, "cell"_a, "directions"_a, "hidden"_a,
                    "Make a packing of weights of the state. Operands: weights, packed weights.");
}

} // namespace tightship::bind
