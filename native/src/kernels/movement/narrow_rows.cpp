#include "tightship/kernels/movement/narrow_rows.hpp"

#include "tightship/kernels/convert.hpp"

#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

namespace tightship::kernels {

namespace {

constexpr uint32_t kInfinityBits = 0x7F800000;
constexpr int32_t kMost = 127;
/// Adding it rounds to a whole number, which the low bits of the sum then hold.
constexpr float kWhole = 12582912.0F;

TIGHTSHIP_INLINE void narrow_to_int8(int64_t width, const float *from, char *to) {
    uint32_t largest = 0; // floats of one sign are ordered as their bits are
    for (int64_t index = 0; index < width; ++index) {
        const uint32_t bits = std::bit_cast<uint32_t>(from[index]) & 0x7FFFFFFF;
        largest = bits > largest ? bits : largest;
    }
    const bool is_finite = largest < kInfinityBits;
    const float scale = is_finite ? std::bit_cast<float>(largest) / static_cast<float>(kMost)
                                  : std::numeric_limits<float>::quiet_NaN();
    std::memcpy(to + width, &scale, sizeof scale);
    if (!(scale > 0)) {
        std::memset(to, 0, static_cast<size_t>(width));
        return;
    }
    auto *quants = reinterpret_cast<int8_t *>(to);
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < width; ++index) {
        const float sum = from[index] / scale + kWhole;
        const int32_t whole = std::bit_cast<int32_t>(sum) - std::bit_cast<int32_t>(kWhole);
        const int32_t low = whole < -kMost ? -kMost : whole;
        quants[index] = static_cast<int8_t>(low > kMost ? kMost : low);
    }
}

TIGHTSHIP_CLONES void narrow_all_to_int8(int64_t width, const float *from, char *to,
                                         int64_t count) {
    for (int64_t row = 0; row < count; ++row)
        narrow_to_int8(width, from + row * width, to + row * (width + kScaleBytes));
}

} // namespace

RowType row_type(std::string_view name) {
    constexpr std::array<std::string_view, 4> kNames{"float32", "float16", "bfloat16", "int8"};
    for (size_t index = 0; index < kNames.size(); ++index)
        if (kNames[index] == name)
            return static_cast<RowType>(index);
    throw std::invalid_argument("Rows cannot be stored as `" + std::string(name) + "`.");
}

void narrow_rows(RowType type, int64_t width, const float *from, char *to, int64_t count) {
    if (type == RowType::kInt8)
        return narrow_all_to_int8(width, from, to, count);
    constexpr ElementType kTypes[] = {ElementType::kFloat32, ElementType::kFloat16,
                                      ElementType::kBfloat16};
    conversion_to(kTypes[static_cast<int>(type)])(
        ElementType::kFloat32, reinterpret_cast<const char *>(from), to, count * width);
}

} // namespace tightship::kernels
