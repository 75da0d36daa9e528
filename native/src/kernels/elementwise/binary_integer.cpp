#include "tightship/kernels/elementwise/integers.hpp"

#include <algorithm>

namespace tightship::kernels {

namespace {

using enum ElementType;

constexpr std::string_view kNames[] = {
    "Add", "Sub", "Mul",  "Min", "Max",   "BitwiseAnd", "BitwiseOr", "BitwiseXor",
    "Div", "Mod", "Fmod", "Pow", "PRelu", "ShiftLeft",  "ShiftRight"};

template <class T> bool overflows(T a, T b) {
    return std::is_signed_v<T> && b == static_cast<T>(-1) && a < 0;
}

/// Toward zero; 0 for a divisor of 0, as NumPy has it.
template <class T> T quotient(T a, T b) {
    if (b == 0)
        return 0;
    if (overflows(a, b))
        return static_cast<T>(Wrapping<T>{} - static_cast<Wrapping<T>>(a));
    return static_cast<T>(a / b);
}

/// With the sign of the dividend; 0 for a divisor of 0, as NumPy has it.
template <class T> T remainder(T a, T b) {
    return b == 0 || overflows(a, b) ? T(0) : static_cast<T>(a % b);
}

/// With the sign of the divisor.
template <class T> T floored_remainder(T a, T b) {
    const T rest = remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
}

/// By squaring; REQUIRES: `exponent` is not negative.
template <class T> T power(T base, T exponent) {
    Wrapping<T> result = 1, factor = static_cast<Wrapping<T>>(base);
    for (auto left = static_cast<std::make_unsigned_t<T>>(exponent); left != 0;
         left = static_cast<decltype(left)>(left >> 1)) {
        if (left & 1)
            result *= factor;
        factor *= factor;
    }
    return static_cast<T>(result);
}

template <class T> T shifted_left(T a, T by) {
    using U = std::make_unsigned_t<T>;
    return static_cast<U>(by) < sizeof(T) * 8 ? static_cast<T>(static_cast<Wrapping<T>>(a) << by)
                                              : T(0);
}

template <class T> T shifted_right(T a, T by) {
    constexpr auto bits = sizeof(T) * 8;
    return static_cast<T>(a >> (static_cast<std::make_unsigned_t<T>>(by) < bits ? by : bits - 1) >>
                          (static_cast<std::make_unsigned_t<T>>(by) < bits ? 0 : 1));
}

template <class T> struct Binary {
    static void apply(int code, const char *const *inputs, char *output, int64_t length,
                      const double *) {
        using W = Wrapping<T>;
        const auto *x = reinterpret_cast<const T *>(inputs[0]);
        const auto *y = reinterpret_cast<const T *>(inputs[1]);
        auto *z = reinterpret_cast<T *>(output);
        const auto each = [=](auto f) { zip_row(x, y, z, length, f); };
        switch (code) {
        case 0:
            return each([](T a, T b) { return static_cast<T>(W(a) + W(b)); });
        case 1:
            return each([](T a, T b) { return static_cast<T>(W(a) - W(b)); });
        case 2:
            return each([](T a, T b) { return static_cast<T>(W(a) * W(b)); });
        case 3:
            return each([](T a, T b) { return std::min(a, b); });
        case 4:
            return each([](T a, T b) { return std::max(a, b); });
        case 5:
            return each([](T a, T b) { return static_cast<T>(a & b); });
        case 6:
            return each([](T a, T b) { return static_cast<T>(a | b); });
        case 7:
            return each([](T a, T b) { return static_cast<T>(a ^ b); });
        case 8:
            return each(quotient<T>);
        case 9:
            return each(floored_remainder<T>);
        case 10:
            return each(remainder<T>);
        case 11:
            return each(power<T>);
        case 12:
            return each([](T a, T b) { return a > 0 ? a : static_cast<T>(W(a) * W(b)); });
        case 13:
            return each(shifted_left<T>);
        default:
            return each(shifted_right<T>);
        }
    }
};

void apply_logic(int code, const char *const *inputs, char *output, int64_t length,
                 const double *) {
    const auto each = [=](auto f) { zip_row(inputs[0], inputs[1], output, length, f); };
    switch (code) {
    case 0:
        return each([](char a, char b) { return static_cast<char>((a != 0) & (b != 0)); });
    case 1:
        return each([](char a, char b) { return static_cast<char>((a | b) != 0); });
    default:
        return each([](char a, char b) { return static_cast<char>((a != 0) != (b != 0)); });
    }
}

} // namespace

std::optional<Operation> binary_integer_operation(std::string_view name, ElementType type) {
    if (type == kBool) {
        const int code = name == "And" ? 0 : name == "Or" ? 1 : name == "Xor" ? 2 : -1;
        return code < 0 ? std::nullopt : std::optional(Operation{apply_logic, code, type, type});
    }
    for (int code = 0; code < static_cast<int>(std::size(kNames)); ++code)
        if (kNames[code] == name)
            return Operation{for_integer<Binary>(type), code, type, type};
    return std::nullopt;
}

} // namespace tightship::kernels
