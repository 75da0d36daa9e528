#include "tightship/kernels/elementwise/function_list.hpp"
#include "tightship/kernels/elementwise/integers.hpp"

#include <algorithm>
#include <array>

namespace tightship::kernels {

namespace {

using enum ElementType;

template <class T> bool overflows(T a, T b) {
    return std::is_signed_v<T> && b == static_cast<T>(-1) && a < 0;
}

/// Divides toward zero; 0 for a divisor of 0, as in NumPy.
template <class T> T quotient(T a, T b) {
    if (b == 0)
        return 0;
    if (overflows(a, b))
        return static_cast<T>(Wrapping<T>{} - static_cast<Wrapping<T>>(a));
    return static_cast<T>(a / b);
}

/// Computes the remainder with the sign of the dividend; 0 for a divisor of 0, as in NumPy.
template <class T> T remainder(T a, T b) {
    return b == 0 || overflows(a, b) ? T(0) : static_cast<T>(a % b);
}

/// Computes the remainder with the sign of the divisor.
template <class T> T floored_remainder(T a, T b) {
    const T rest = remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
}

/// Computes a power by squaring. REQUIRES: `exponent` is not negative.
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

/// Operations on the elements `a` and `b`; integers wrap around as `W`.
#define FUNCTIONS(F)                                                                               \
    F(Add, static_cast<T>(W(a) + W(b)))                                                            \
    F(Sub, static_cast<T>(W(a) - W(b)))                                                            \
    F(Mul, static_cast<T>(W(a) * W(b)))                                                            \
    F(Min, std::min(a, b))                                                                         \
    F(Max, std::max(a, b))                                                                         \
    F(BitwiseAnd, static_cast<T>(a & b))                                                           \
    F(BitwiseOr, static_cast<T>(a | b))                                                            \
    F(BitwiseXor, static_cast<T>(a ^ b))                                                           \
    F(Div, quotient(a, b))                                                                         \
    F(Mod, floored_remainder(a, b))                                                                \
    F(Fmod, remainder(a, b))                                                                       \
    F(Pow, power(a, b))                                                                            \
    F(PRelu, a > 0 ? a : static_cast<T>(W(a) * W(b)))                                              \
    F(ShiftLeft, shifted_left(a, b))                                                               \
    F(ShiftRight, shifted_right(a, b))

enum Code { FUNCTIONS(TIGHTSHIP_CODE) };
constexpr std::array kNames{FUNCTIONS(TIGHTSHIP_NAME)};

template <class T> struct Binary {
    static void apply(int code, const char *const *inputs, char *output, int64_t length,
                      const double *) {
        using W = Wrapping<T>;
        const auto *x = reinterpret_cast<const T *>(inputs[0]);
        const auto *y = reinterpret_cast<const T *>(inputs[1]);
        auto *z = reinterpret_cast<T *>(output);
#define CASE(name, body)                                                                           \
    case k##name:                                                                                  \
        return zip_row(x, y, z, length, [](T a, T b) { return body; });
        switch (code) { FUNCTIONS(CASE) }
#undef CASE
    }
};

#define LOGIC(F)                                                                                   \
    F(And, (a != 0) & (b != 0))                                                                    \
    F(Or, (a | b) != 0)                                                                            \
    F(Xor, (a != 0) != (b != 0))

enum Logic { LOGIC(TIGHTSHIP_CODE) };
constexpr std::array kLogic{LOGIC(TIGHTSHIP_NAME)};

void apply_logic(int code, const char *const *inputs, char *output, int64_t length,
                 const double *) {
#define CASE(name, body)                                                                           \
    case k##name:                                                                                  \
        return zip_row(inputs[0], inputs[1], output, length,                                       \
                       [](char a, char b) { return static_cast<char>(body); });
    switch (code) { LOGIC(CASE) }
#undef CASE
}

} // namespace

std::optional<Operation> binary_integer_operation(std::string_view name, ElementType type) {
    const bool is_logic = type == kBool;
    const int code = is_logic ? code_of(kLogic, name) : code_of(kNames, name);
    if (code < 0)
        return std::nullopt;
    return Operation{is_logic ? apply_logic : for_integer<Binary>(type), code, type, type};
}

Names binary_integer_names() {
    return kNames;
}

Names logic_names() {
    return kLogic;
}

} // namespace tightship::kernels
