#include "tightship/kernels/convert.hpp"

#include <cstring>
#include <limits>
#include <type_traits>

namespace tightship::kernels {

namespace {

using enum ElementType;

template <class X> TIGHTSHIP_INLINE X plain(X x) {
    return x;
}

TIGHTSHIP_INLINE uint8_t plain(Bool x) {
    return x.byte != 0;
}

TIGHTSHIP_INLINE float plain(Float16 x) {
    return widened(x);
}

TIGHTSHIP_INLINE float plain(Bfloat16 x) {
    return widened(x);
}

/// Truncates toward zero; returns the lowest integer if the result does not fit, or x is NaN.
template <class Integer, class Real> TIGHTSHIP_INLINE Integer truncated(Real x) {
    constexpr auto lowest = std::numeric_limits<Integer>::min();
    constexpr auto limit = -static_cast<Real>(lowest);
    return x >= -limit && x < limit ? static_cast<Integer>(x) : lowest;
}

template <class To, class X> TIGHTSHIP_INLINE To integer(X x) {
    if constexpr (!std::is_floating_point_v<X>) {
        return static_cast<To>(x);
    } else if constexpr (std::is_same_v<To, uint64_t>) {
        constexpr X half = 0x1p63;
        const bool is_high = x >= half;
        return static_cast<uint64_t>(truncated<int64_t>(is_high ? x - half : x)) +
               (static_cast<uint64_t>(is_high) << 63);
    } else if constexpr (std::is_same_v<To, int64_t> || std::is_same_v<To, uint32_t>) {
        return static_cast<To>(truncated<int64_t>(x));
    } else {
        return static_cast<To>(truncated<int32_t>(x));
    }
}

template <class To, class X> TIGHTSHIP_INLINE To converted(X x) {
    if constexpr (std::is_same_v<To, Bool>)
        return {static_cast<uint8_t>(x != 0)};
    else if constexpr (std::is_same_v<To, Float16> && std::is_same_v<X, double>)
        return to_float16(to_odd(x));
    else if constexpr (std::is_same_v<To, Float16>)
        return to_float16(static_cast<float>(x));
    else if constexpr (std::is_same_v<To, Bfloat16> && std::is_same_v<X, double>)
        return to_bfloat16(to_odd(x));
    else if constexpr (std::is_same_v<To, Bfloat16>)
        return to_bfloat16(static_cast<float>(x));
    else if constexpr (std::is_floating_point_v<To>)
        return static_cast<To>(x);
    else
        return integer<To>(x);
}

template <class From, class To>
TIGHTSHIP_INLINE void row(const char *source, char *target, int64_t length) {
    map_row(reinterpret_cast<const From *>(source), reinterpret_cast<To *>(target), length,
            [](From x) __attribute__((always_inline)) { return converted<To>(plain(x)); });
}

template <class To>
TIGHTSHIP_INLINE void rows(ElementType from, const char *source, char *target, int64_t length) {
    switch (from) {
    case kBool:
        return row<Bool, To>(source, target, length);
    case kInt8:
        return row<int8_t, To>(source, target, length);
    case kInt16:
        return row<int16_t, To>(source, target, length);
    case kInt32:
        return row<int32_t, To>(source, target, length);
    case kInt64:
        return row<int64_t, To>(source, target, length);
    case kUint8:
        return row<uint8_t, To>(source, target, length);
    case kUint16:
        return row<uint16_t, To>(source, target, length);
    case kUint32:
        return row<uint32_t, To>(source, target, length);
    case kUint64:
        return row<uint64_t, To>(source, target, length);
    case kFloat16:
        return row<Float16, To>(source, target, length);
    case kBfloat16:
        return row<Bfloat16, To>(source, target, length);
    case kFloat32:
        return row<float, To>(source, target, length);
    case kFloat64:
        return row<double, To>(source, target, length);
    }
}

#define CONVERSION(name, To)                                                                       \
    TIGHTSHIP_CLONES void name(ElementType from, const char *source, char *target,                 \
                               int64_t length) {                                                   \
        rows<To>(from, source, target, length);                                                    \
    }
CONVERSION(into_bool, Bool)
CONVERSION(into_8_bits, uint8_t)
CONVERSION(into_16_bits, uint16_t)
CONVERSION(into_int32, int32_t)
CONVERSION(into_uint32, uint32_t)
CONVERSION(into_int64, int64_t)
CONVERSION(into_uint64, uint64_t)
CONVERSION(into_float16, Float16)
CONVERSION(into_bfloat16, Bfloat16)
CONVERSION(into_float32, float)
CONVERSION(into_float64, double)
#undef CONVERSION

template <class Item>
void spread_items(const char *from, int64_t from_step, char *to, int64_t to_step, int64_t length) {
    for (int64_t index = 0; index < length; ++index)
        std::memcpy(to + index * to_step, from + index * from_step, sizeof(Item));
}

constexpr std::string_view kNames[kElementTypes] = {
    "bool",   "int8",   "int16",   "int32",    "int64",   "uint8",  "uint16",
    "uint32", "uint64", "float16", "bfloat16", "float32", "float64"};

} // namespace

std::optional<ElementType> element_type(std::string_view name) {
    for (int index = 0; index < kElementTypes; ++index)
        if (kNames[index] == name)
            return static_cast<ElementType>(index);
    return std::nullopt;
}

Convert conversion_to(ElementType to) {
    constexpr Convert conversions[kElementTypes] = {
        into_bool,     into_8_bits,  into_16_bits, into_int32,  into_int64,
        into_8_bits,   into_16_bits, into_uint32,  into_uint64, into_float16,
        into_bfloat16, into_float32, into_float64};
    return conversions[static_cast<int>(to)];
}

void spread(int64_t item_bytes, const char *from, int64_t from_step, char *to, int64_t to_step,
            int64_t length) {
    switch (item_bytes) {
    case 1:
        return spread_items<char>(from, from_step, to, to_step, length);
    case 2:
        return spread_items<int16_t>(from, from_step, to, to_step, length);
    case 4:
        return spread_items<int32_t>(from, from_step, to, to_step, length);
    default:
        return spread_items<int64_t>(from, from_step, to, to_step, length);
    }
}

} // namespace tightship::kernels
