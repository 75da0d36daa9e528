/// Codecs of the rules that kernels are made from.
#pragma once

#include "tightship/kernels/attention/attention.hpp"
#include "tightship/kernels/convolution/convolution.hpp"
#include "tightship/kernels/product/block_format.hpp"
#include "tightship/kernels/recurrent/recurrent.hpp"
#include "tightship/recipe.hpp"

namespace tightship::recipe {

template <> struct Codec<kernels::Mask> : EnumCodec<kernels::Mask, kernels::Mask::kHidden> {};
template <> struct Codec<kernels::Cell> : EnumCodec<kernels::Cell, kernels::Cell::kLstm> {};
template <>
struct Codec<kernels::Function>
    : EnumCodec<kernels::Function, kernels::Function::kThresholdedRelu> {};

template <>
struct Codec<kernels::BlockFloat> : EnumCodec<kernels::BlockFloat, kernels::BlockFloat::kFloat16> {
};
template <>
struct Codec<kernels::BlockZeros> : EnumCodec<kernels::BlockZeros, kernels::BlockZeros::kFloats> {};

/// Codec of a plain struct, as its members in order.
template <class T, class... Members> struct StructCodec {
    static T decode(Reader &reader) { return T{recipe::decode<Members>(reader)...}; }

  protected:
    static void encode_members(Writer &writer, const Members &...members) {
        (recipe::encode<Members>(writer, members), ...);
    }
};

template <>
struct Codec<kernels::AttentionRule>
    : StructCodec<kernels::AttentionRule, float, kernels::Mask, float, int64_t, int64_t, int64_t,
                  float, bool, bool, bool, bool> {
    static void encode(Writer &writer, const kernels::AttentionRule &rule) {
        const auto &[scale, mask, fill, ahead, behind, first, cap, counted, sinks, undefined,
                     unseen] = rule;
        encode_members(writer, scale, mask, fill, ahead, behind, first, cap, counted, sinks,
                       undefined, unseen);
    }
};

template <>
struct Codec<kernels::Activation>
    : StructCodec<kernels::Activation, kernels::Function, float, float> {
    static void encode(Writer &writer, const kernels::Activation &activation) {
        const auto &[function, alpha, beta] = activation;
        encode_members(writer, function, alpha, beta);
    }
};

template <>
struct Codec<kernels::RecurrentRule> : StructCodec<kernels::RecurrentRule, kernels::Cell, bool,
                                                   bool, float, std::vector<kernels::Activation>> {
    static void encode(Writer &writer, const kernels::RecurrentRule &rule) {
        const auto &[cell, reversed, coupled, limit, activations] = rule;
        encode_members(writer, cell, reversed, coupled, limit, activations);
    }
};

template <>
struct Codec<kernels::ConvolutionShape>
    : StructCodec<kernels::ConvolutionShape, int64_t, int64_t, int64_t, std::array<int64_t, 2>,
                  std::array<int64_t, 2>, std::array<int64_t, 2>, std::array<int64_t, 2>,
                  std::array<int64_t, 2>, std::array<int64_t, 2>, int64_t, bool> {
    static void encode(Writer &writer, const kernels::ConvolutionShape &shape) {
        const auto &[batch, channels, outputs, source, target, kernel, strides, dilations, pads,
                     depth, by_block] = shape;
        encode_members(writer, batch, channels, outputs, source, target, kernel, strides, dilations,
                       pads, depth, by_block);
    }
};

template <>
struct Codec<kernels::BlockFormat>
    : StructCodec<kernels::BlockFormat, int64_t, int64_t, bool, kernels::BlockFloat,
                  kernels::BlockZeros, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t> {
    static void encode(Writer &writer, const kernels::BlockFormat &format) {
        const auto &[bits, block, is_signed, scale, zeros, quants_row, quants_block, scales_row,
                     scales_block, zeros_row, zeros_block] = format;
        encode_members(writer, bits, block, is_signed, scale, zeros, quants_row, quants_block,
                       scales_row, scales_block, zeros_row, zeros_block);
    }
};

} // namespace tightship::recipe
