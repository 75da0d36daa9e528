#include "tightship/kernels/attention/attention.hpp"
#include "recorded.hpp"
#include "tightship/kernels/movement/narrow_rows.hpp"
#include "tightship/kernels/recipes.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

template <class Kind, size_t kCount>
Kind named(const std::array<std::pair<std::string_view, Kind>, kCount> &all, const char *what,
           std::string_view name) {
    for (const auto &[known, kind] : all)
        if (known == name)
            return kind;
    throw std::invalid_argument("Unknown " + std::string(what) + " `" + std::string(name) + "`.");
}

kernels::Mask mask_named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, kernels::Mask>, 4> kMasks{
        {{"none", kernels::Mask::kNone},
         {"added", kernels::Mask::kAdded},
         {"kept", kernels::Mask::kKept},
         {"hidden", kernels::Mask::kHidden}}};
    return named(kMasks, "kind of mask", name);
}

kernels::AttentionLevel level_named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, kernels::AttentionLevel>, 3> kLevels{
        {{"portable", kernels::AttentionLevel::kPortable},
         {"avx2", kernels::AttentionLevel::kAvx2},
         {"avx512", kernels::AttentionLevel::kAvx512}}};
    return named(kLevels, "level of attention", name);
}

} // namespace

void attention_kernels(nb::class_<Kernel> &kernel) {
    nb::class_<kernels::AttentionRule>(
        kernel, "AttentionRule",
        "Rule by which scores become weights; `mask` is none, added, kept or hidden.")
        .def(
            "__init__",
            [](kernels::AttentionRule *self, float scale, std::string_view mask, float fill,
               int64_t ahead, int64_t behind, int64_t first, float cap, bool counted, bool sinks,
               bool zero_if_undefined, bool zero_if_unseen) {
                new (self) kernels::AttentionRule{
                    scale, mask_named(mask),  fill,          ahead, behind, first, cap, counted,
                    sinks, zero_if_undefined, zero_if_unseen};
            },
            "scale"_a, "mask"_a = "none", "fill"_a = 0.0F, "ahead"_a = -1, "behind"_a = -1,
            "first"_a = 0, "cap"_a = 0.0F, "counted"_a = false, "sinks"_a = false,
            "zero_if_undefined"_a = false, "zero_if_unseen"_a = false);
    recorded(kernel).def_static(
        "attention",
        [](const std::string &node, const kernels::Dims &outer, const std::array<int64_t, 4> &sizes,
           const kernels::AttentionRule &rule, const std::vector<kernels::Dims> &strides,
           const std::string &key_type, const std::string &value_type, const std::string &most) {
            return kernels::attention(node,
                                      {outer, sizes[0], sizes[1], sizes[2], sizes[3],
                                       kernels::row_type(key_type), kernels::row_type(value_type)},
                                      rule, strides, level_named(most));
        },
        "node"_a, "outer"_a, "sizes"_a, "rule"_a, "strides"_a, "key_type"_a = "float32",
        "value_type"_a = "float32", "most"_a = "avx512",
        "Make an attention. Operands: queries, keys, values[, mask][, lengths][, sinks], target, "
        "scratch. `sizes`: queries, keys, depth, width; `strides` in bytes. Keys and values may be "
        "float16, bfloat16, or int8 with a float32 behind each row, its scale. `most`: the newest "
        "instructions to use, portable, avx2 or avx512.");
}

} // namespace tightship::bind
