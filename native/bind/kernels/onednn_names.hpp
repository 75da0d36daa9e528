/// Names of oneDNN's element types and algorithms in Python.
#pragma once

#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"

#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl_types.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tightship::bind {

template <class Code> using Name = std::pair<std::string_view, Code>;

inline constexpr std::array<Name<dnnl_data_type_t>, 6> kDtypes{{{"float32", dnnl_f32},
                                                                {"bfloat16", dnnl_bf16},
                                                                {"float16", dnnl_f16},
                                                                {"int32", dnnl_s32},
                                                                {"int8", dnnl_s8},
                                                                {"uint8", dnnl_u8}}};

inline constexpr std::array<Name<dnnl_alg_kind_t>, 20> kEltwise{{
    {"relu", dnnl_eltwise_relu},
    {"tanh", dnnl_eltwise_tanh},
    {"elu", dnnl_eltwise_elu},
    {"square", dnnl_eltwise_square},
    {"abs", dnnl_eltwise_abs},
    {"sqrt", dnnl_eltwise_sqrt},
    {"linear", dnnl_eltwise_linear},
    {"soft_relu", dnnl_eltwise_soft_relu},
    {"hardsigmoid", dnnl_eltwise_hardsigmoid},
    {"logistic", dnnl_eltwise_logistic},
    {"exp", dnnl_eltwise_exp},
    {"gelu_tanh", dnnl_eltwise_gelu_tanh},
    {"swish", dnnl_eltwise_swish},
    {"log", dnnl_eltwise_log},
    {"clip", dnnl_eltwise_clip},
    {"pow", dnnl_eltwise_pow},
    {"gelu_erf", dnnl_eltwise_gelu_erf},
    {"round", dnnl_eltwise_round},
    {"mish", dnnl_eltwise_mish},
    {"hardswish", dnnl_eltwise_hardswish},
}};

inline constexpr std::array<Name<dnnl_alg_kind_t>, 6> kBinary{{{"add", dnnl_binary_add},
                                                               {"mul", dnnl_binary_mul},
                                                               {"max", dnnl_binary_max},
                                                               {"min", dnnl_binary_min},
                                                               {"div", dnnl_binary_div},
                                                               {"sub", dnnl_binary_sub}}};

inline constexpr std::array<Name<dnnl_alg_kind_t>, 3> kPooling{
    {{"max", dnnl_pooling_max},
     {"average", dnnl_pooling_avg_exclude_padding},
     {"average_with_padding", dnnl_pooling_avg_include_padding}}};

inline constexpr std::array<Name<dnnl_alg_kind_t>, 5> kReduction{{{"max", dnnl_reduction_max},
                                                                  {"min", dnnl_reduction_min},
                                                                  {"sum", dnnl_reduction_sum},
                                                                  {"mul", dnnl_reduction_mul},
                                                                  {"mean", dnnl_reduction_mean}}};

/// Gradients computed from the operation's output (`_of_output`), or else from its input.
inline constexpr std::array<Name<dnnl_alg_kind_t>, 11> kEltwiseGradients{{
    {"relu_of_output", dnnl_eltwise_relu_use_dst_for_bwd},
    {"tanh_of_output", dnnl_eltwise_tanh_use_dst_for_bwd},
    {"logistic_of_output", dnnl_eltwise_logistic_use_dst_for_bwd},
    {"relu", dnnl_eltwise_relu},
    {"elu", dnnl_eltwise_elu},
    {"soft_relu", dnnl_eltwise_soft_relu},
    {"swish", dnnl_eltwise_swish},
    {"gelu_erf", dnnl_eltwise_gelu_erf},
    {"gelu_tanh", dnnl_eltwise_gelu_tanh},
    {"hardsigmoid", dnnl_eltwise_hardsigmoid},
    {"hardswish", dnnl_eltwise_hardswish},
}};

template <class Code, size_t count>
Code lookup(const std::array<Name<Code>, count> &names, const std::string &name) {
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const auto &entry) { return entry.first == name; });
    if (found == names.end())
        throw std::invalid_argument("Unknown oneDNN name `" + name + "` in this place.");
    return found->second;
}

inline dnnl_data_type_t dtype_of(const std::string &name) {
    return lookup(kDtypes, name);
}
inline dnnl_alg_kind_t eltwise_of(const std::string &name) {
    return lookup(kEltwise, name);
}
inline dnnl_alg_kind_t eltwise_gradient_of(const std::string &name) {
    return lookup(kEltwiseGradients, name);
}
inline dnnl_alg_kind_t binary_of(const std::string &name) {
    return lookup(kBinary, name);
}
inline dnnl_alg_kind_t pooling_of(const std::string &name) {
    return lookup(kPooling, name);
}
inline dnnl_alg_kind_t reduction_of(const std::string &name) {
    return lookup(kReduction, name);
}

inline std::string name_of(dnnl_data_type_t dtype) {
    const auto found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                    [&](const auto &entry) { return entry.second == dtype; });
    return found == kDtypes.end() ? "undefined" : std::string(found->first);
}

} // namespace tightship::bind

#endif
