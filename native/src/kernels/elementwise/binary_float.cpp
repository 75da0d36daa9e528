#include "tightship/kernels/elementwise/elementwise.hpp"
#include "tightship/kernels/elementwise/function_list.hpp"
#include "tightship/kernels/elementwise/power.hpp"

#include <array>

namespace tightship::kernels {

namespace {

using enum ElementType;

/// Operations up to Pow have vector loops; `a` and `b` are the elements.
#define VECTORISED(F)                                                                              \
    F(Add, a + b)                                                                                  \
    F(Sub, a - b)                                                                                  \
    F(Mul, (a * b))                                                                                \
    F(Div, a / b)                                                                                  \
    F(Min, smaller(a, b))                                                                          \
    F(Max, larger(a, b))                                                                           \
    F(PRelu, a > 0 ? a : a * b)
#define FUNCTIONS(F) VECTORISED(F) F(Pow, ) F(Mod, ) F(Fmod, )

enum Code { FUNCTIONS(TIGHTSHIP_CODE) };
constexpr std::array kNames{FUNCTIONS(TIGHTSHIP_NAME)};

template <class Real> TIGHTSHIP_INLINE Real smaller(Real a, Real b) {
    return a < b || a != a ? a : b;
}

template <class Real> TIGHTSHIP_INLINE Real larger(Real a, Real b) {
    return a > b || a != a ? a : b;
}

template <class Real> TIGHTSHIP_INLINE bool is_filled(const Real *y, int64_t length, Real with) {
    int others = 0;
    for (int64_t index = 0; index < length; ++index)
        others |= y[index] != with;
    return others == 0;
}

/// Computes powers; if all exponents are 0.5, -0.5 or -1, by instructions for roots and quotients.
template <class Real>
TIGHTSHIP_INLINE void powers(const Real *x, const Real *y, Real *z, int64_t length) {
    const Real first = length > 0 ? y[0] : Real(0);
    const bool has_own = first == Real(0.5) || first == Real(-0.5) || first == Real(-1);
    if (!has_own || !is_filled(y, length, first))
        return zip_row(x, y, z, length,
                       [](Real a, Real b) __attribute__((always_inline)) { return power(a, b); });
    if (first == Real(0.5))
        return map_row(x, z, length, [](Real a) __attribute__((always_inline)) { return root(a); });
    if (first == Real(-0.5))
        return map_row(x, z, length,
                       [](Real a) __attribute__((always_inline)) { return 1 / root(a); });
    map_row(x, z, length, [](Real a) __attribute__((always_inline)) { return 1 / a; });
}

template <class Real>
TIGHTSHIP_INLINE void vectorised(int code, const Real *x, const Real *y, Real *z, int64_t length) {
#define CASE(name, body)                                                                           \
    case k##name:                                                                                  \
        return zip_row(x, y, z, length,                                                            \
                       [](Real a, Real b) __attribute__((always_inline)) { return body; });
    switch (code) {
        VECTORISED(CASE)
    case kPow:
        return powers(x, y, z, length);
    }
#undef CASE
}

/// Computes the remainder with the sign of the divisor, also of zero.
template <class Real> Real floored_remainder(Real a, Real b) {
    const Real rest = std::fmod(a, b);
    if (rest == 0)
        return std::copysign(rest, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

template <class Real>
void by_library(int code, const Real *x, const Real *y, Real *z, int64_t length) {
    switch (code) {
    case kMod:
        return zip_row(x, y, z, length, floored_remainder<Real>);
    default:
        return zip_row(x, y, z, length, [](Real a, Real b) { return std::fmod(a, b); });
    }
}

#define APPLY(name, Real)                                                                          \
    TIGHTSHIP_CLONES void name(int code, const char *const *inputs, char *output, int64_t length,  \
                               const double *) {                                                   \
        const auto *x = reinterpret_cast<const Real *>(inputs[0]);                                 \
        const auto *y = reinterpret_cast<const Real *>(inputs[1]);                                 \
        auto *z = reinterpret_cast<Real *>(output);                                                \
        if (code <= kPow)                                                                          \
            vectorised(code, x, y, z, length);                                                     \
        else                                                                                       \
            by_library(code, x, y, z, length);                                                     \
    }
APPLY(apply_float32, float)
APPLY(apply_float64, double)
#undef APPLY

} // namespace

std::optional<Operation> binary_float_operation(std::string_view name, ElementType type) {
    const int code = code_of(kNames, name);
    return code < 0 ? std::nullopt
                    : std::optional(Operation{type == kFloat32 ? apply_float32 : apply_float64,
                                              code, type, type});
}

Names binary_float_names() {
    return kNames;
}

} // namespace tightship::kernels
