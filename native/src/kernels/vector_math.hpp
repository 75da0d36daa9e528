/// Elementary functions of a vector, for loops that are compiled once for each instruction set.
#pragma once

#include "tile.hpp"

namespace tightship::kernels::TIGHTSHIP_ISA {

namespace {

/// Reduction x = n ln 2 + r with |r| <= ln 2 / 2; `power` is 2^n. REQUIRES: -87.33 <= x <= 0, or
/// NaN.
struct Reduced {
    Vector rest, power;
};

inline Reduced reduced(Vector x) {
    // Adding 1.5 * 2^23 rounds to a whole number, which the low bits then hold, biased by 127.
    const Vector shifted = x * 1.44269504F + 12583039.0F;
    const Vector whole = shifted - 12583039.0F;
    return {(x - whole * 0.693359375F) + whole * 2.12194440e-4F,
            reinterpret_cast<Vector>(reinterpret_cast<Ints>(shifted) << 23)};
}

/// Computes e^r - 1 for |r| <= ln 2 / 2, by a polynomial.
inline Vector small_exponential_less_one(Vector r) {
    Vector sum = r * 1.9875691500e-4F + 1.3981999507e-3F;
    sum = sum * r + 8.3334519073e-3F;
    sum = sum * r + 4.1665795894e-2F;
    sum = sum * r + 1.6666665459e-1F;
    sum = sum * r + 5.0000001201e-1F;
    return sum * r * r + r;
}

/// Computes e^x for x <= 0, with an error of 2 units in the last place at most; NaN stays NaN,
/// results below normal numbers are 0.
inline Vector exponential(Vector x) {
    const Vector lowest = spread(-87.33F);
    const Ints vanishes = x < lowest;
    const auto [rest, power] = reduced(vanishes ? lowest : x);
    return vanishes ? Vector{} : (small_exponential_less_one(rest) + 1.0F) * power;
}

/// Computes e^x - 1 for x <= 0.
inline Vector exponential_less_one(Vector x) {
    const Vector lowest = spread(-18.0F);
    const auto [rest, power] = reduced(x < lowest ? lowest : x);
    return power * small_exponential_less_one(rest) + (power - 1.0F);
}

inline Vector magnitude(Vector x) {
    return reinterpret_cast<Vector>(reinterpret_cast<Ints>(x) & 0x7FFFFFFF);
}

inline Vector with_sign_of(Vector x, Vector sign) {
    return reinterpret_cast<Vector>((reinterpret_cast<Ints>(x) & 0x7FFFFFFF) |
                                    (reinterpret_cast<Ints>(sign) & ~0x7FFFFFFF));
}

/// Computes 1 / (1 + e^-x), as precisely for small results.
inline Vector sigmoid(Vector x) {
    const Vector power = exponential(-magnitude(x));
    return (x < 0.0F ? power : spread(1.0F)) / (power + 1.0F);
}

/// Computes x / (1 + e^-x); below -87 the result is nearly zero.
inline Vector swish(Vector x) {
    const Vector highest = spread(87.0F), lowest = spread(-87.0F);
    const Vector raised = x < lowest ? lowest : x;
    const auto [rest, power] = reduced(-(raised > highest ? highest : raised));
    return raised / ((small_exponential_less_one(rest) + 1.0F) * power + 1.0F);
}

inline Vector hyperbolic_tangent(Vector x) {
    const Vector less_one = exponential_less_one(magnitude(x) * -2.0F);
    return with_sign_of(less_one / (less_one + 2.0F), x);
}

inline Vector polynomial(Vector x, const float (&coefficients)[7]) {
    Vector sum = spread(coefficients[6]);
    for (int index = 6; index-- > 0;)
        sum = sum * x + coefficients[index];
    return sum;
}

/// Computes erf as x P(x^2) up to 1, 1 - exp(-Q(x)) beyond; see float_math.hpp for P and Q.
inline Vector error_function(Vector x) {
    constexpr float kNear[] = {1.1283791671e+0F,  -3.7612628832e-1F, 1.1283612350e-1F,
                               -2.6854806104e-2F, 5.1900498107e-3F,  -8.0243257083e-4F,
                               7.8981268577e-5F};
    constexpr float kFar[] = {3.2984706722e-4F, 1.1271379023e+0F,  6.3806165778e-1F,
                              1.0318108358e-1F, -2.1874696975e-2F, 2.9570916306e-3F,
                              -1.8737009243e-4F};
    const Vector size = magnitude(x);
    const Vector limited = size > 4.0F ? spread(4.0F) : size;
    const Vector far = -exponential_less_one(-polynomial(limited, kFar));
    return size < 1.0F ? x * polynomial(x * x, kNear) : with_sign_of(far, x);
}

} // namespace

} // namespace tightship::kernels::TIGHTSHIP_ISA
