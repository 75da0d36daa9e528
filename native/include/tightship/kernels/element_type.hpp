/// Types of elements, and the narrow floats that C++ lacks.
#pragma once

#include "tightship/cpu/clones.hpp"

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tightship::kernels {

enum class ElementType : uint8_t {
    kBool,
    kInt8,
    kInt16,
    kInt32,
    kInt64,
    kUint8,
    kUint16,
    kUint32,
    kUint64,
    kFloat16,
    kBfloat16,
    kFloat32,
    kFloat64,
};

constexpr int kElementTypes = 13;

/// Finds a type by its NumPy name; nothing if kernels cannot compute with it.
std::optional<ElementType> element_type(std::string_view name);

constexpr int64_t item_bytes(ElementType type) {
    constexpr int8_t bytes[kElementTypes] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
    return bytes[static_cast<int>(type)];
}

constexpr bool is_float(ElementType type) {
    return type >= ElementType::kFloat16;
}

constexpr bool is_signed(ElementType type) {
    return type >= ElementType::kInt8 && type <= ElementType::kInt64;
}

/// Returns the type of arithmetic on elements of a type: narrow floats widen to float32.
constexpr ElementType work_type(ElementType type) {
    return type == ElementType::kFloat16 || type == ElementType::kBfloat16 ? ElementType::kFloat32
                                                                           : type;
}

struct Bool {
    uint8_t byte;
};
struct Float16 {
    uint16_t bits;
};
struct Bfloat16 {
    uint16_t bits;
};

TIGHTSHIP_INLINE float widened(Bfloat16 x) {
    return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

/// Rounds to nearest, ties to even; a NaN stays a NaN.
TIGHTSHIP_INLINE Bfloat16 to_bfloat16(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    return {static_cast<uint16_t>(x == x ? rounded : (bits >> 16 | 0x40))};
}

/// Multiplies by 2^112, which changes the bias of the exponent, for denormals too.
TIGHTSHIP_INLINE float widened(Float16 x) {
    const uint32_t magnitude = (x.bits & 0x7FFFu) << 13;
    const float shifted = std::bit_cast<float>(magnitude) * 0x1p112f;
    const bool is_special = magnitude >= (0x7C00u << 13);
    const uint32_t bits = is_special ? magnitude | 0x7F800000u : std::bit_cast<uint32_t>(shifted);
    return std::bit_cast<float>(bits | static_cast<uint32_t>(x.bits & 0x8000u) << 16);
}

/// Rounds to nearest, ties to even; a NaN stays a NaN. Denormal results are rounded by an addition
/// to 0.5, whose last place equals theirs.
TIGHTSHIP_INLINE Float16 to_float16(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    const uint32_t normal = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    const float small = std::bit_cast<float>(magnitude) + 0.5f;
    const uint32_t denormal = std::bit_cast<uint32_t>(small) - 0x3F000000u;
    const uint32_t finite = magnitude < (113u << 23) ? denormal : normal;
    const uint32_t huge = magnitude > 0x7F800000u ? 0x7E00u | (magnitude >> 13 & 0x3FFu) : 0x7C00u;
    return {static_cast<uint16_t>(sign | (magnitude >= (143u << 23) ? huge : finite))};
}

/// Rounds float64 to float32 to odd, so that a second rounding sees whether the first was exact;
/// the result of both is correctly rounded.
TIGHTSHIP_INLINE float to_odd(double x) {
    const float nearest = static_cast<float>(x);
    const uint32_t bits = std::bit_cast<uint32_t>(nearest);
    const double back = static_cast<double>(nearest);
    if (!(back != x) || x != x || (bits & 0x7F800000u) == 0x7F800000u)
        return nearest;
    const bool is_above = (back > x) == (x > 0);
    return std::bit_cast<float>((is_above ? bits - 1 : bits) | 1u);
}

} // namespace tightship::kernels
