/// Number types of the processor, by their NumPy names.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tightship::kernels {

/// Calls `body` with a zero of the type; returns whether the name is a number type's.
template <class Body> bool with_number(std::string_view name, const Body &body) {
    const auto call = [&](auto zero, std::string_view type) {
        if (type != name)
            return false;
        body(zero);
        return true;
    };
    return call(float{}, "float32") || call(int64_t{}, "int64") || call(int32_t{}, "int32") ||
           call(double{}, "float64") || call(int8_t{}, "int8") || call(int16_t{}, "int16") ||
           call(uint8_t{}, "uint8") || call(uint16_t{}, "uint16") || call(uint32_t{}, "uint32") ||
           call(uint64_t{}, "uint64");
}

/// Adds; integers wrap around as in NumPy.
template <class Number> Number sum(Number a, Number b) {
    if constexpr (std::is_integral_v<Number>)
        return static_cast<Number>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
        return a + b;
}

template <class Number> Number product(Number a, Number b) {
    if constexpr (std::is_integral_v<Number>)
        return static_cast<Number>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
        return a * b;
}

/// Returns the greater number, or NaN if one of the two is NaN.
template <class Number> Number greater(Number a, Number b) {
    return a >= b || a != a ? a : b;
}

template <class Number> Number lesser(Number a, Number b) {
    return a <= b || a != a ? a : b;
}

} // namespace tightship::kernels
