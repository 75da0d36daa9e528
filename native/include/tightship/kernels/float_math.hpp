/// Elementary functions in float32 without branches or tables, so that loops over them are
/// vectorized; in float64 they call the library.
///
/// Sources: exp and expm1 are Taylor series after Cody and Waite's reduction by multiples of
/// ln 2; log is the series of 2 artanh(f / (2 + f)); sin and cos are Taylor series after a
/// reduction by multiples of pi / 2 in float64; erf is x P(x^2) up to 1 and 1 - exp(-Q(x))
/// beyond, P and Q least-squares fits at Chebyshev nodes weighted for the relative error of
/// erf (1.4e-9 and 1.2e-9 in exact arithmetic).
#pragma once

#include "tightship/cpu/clones.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace tightship::kernels {

constexpr float kLog2E = 1.44269504f;
constexpr float kLn2High = 0.693359375f; ///< nine bits, so that its small multiples are exact
constexpr float kLn2Low = -2.12194440e-4f;
constexpr double kHalfPiHigh = 1.5707963267341256; ///< 33 bits: products with n are exact
constexpr double kHalfPiLow = 6.077100506506192e-11;

/// Horner's rule, with coefficients from the constant one upwards.
template <class Real> TIGHTSHIP_INLINE Real polynomial(Real, Real last) {
    return last;
}
template <class Real, class... More>
TIGHTSHIP_INLINE Real polynomial(Real x, Real first, More... more) {
    return first + x * polynomial(x, more...);
}

/// 2^n for whole n in [-126, 127].
TIGHTSHIP_INLINE float power_of_two(float n) {
    return std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

struct Reduced {
    float n, r;
};

/// x = n ln 2 + r, |r| <= ln 2 / 2.
TIGHTSHIP_INLINE Reduced reduced_by_ln2(float x) {
    const float n = __builtin_rintf(x * kLog2E);
    return {n, x - n * kLn2High - n * kLn2Low};
}

/// (exp(r) - 1 - r) / r^2.
TIGHTSHIP_INLINE float exponential_rest(float r) {
    return polynomial(r, 1.f / 2, 1.f / 6, 1.f / 24, 1.f / 120, 1.f / 720, 1.f / 5040);
}

TIGHTSHIP_INLINE float exponential(float x) {
    const float limited = x > 89 ? 89.f : (x < -105 ? -105.f : x); // a NaN passes
    const auto [n, r] = reduced_by_ln2(limited);
    const float y = 1 + (r + r * r * exponential_rest(r));
    const float valid = limited == limited ? n : 0.f;
    const float half = __builtin_floorf(valid * 0.5f); // in two steps, for denormal results
    return y * power_of_two(half) * power_of_two(valid - half);
}

/// exp(x) - 1 for x <= 0.
TIGHTSHIP_INLINE float exponential_less_one(float x) {
    const float limited = x < -18 ? -18.f : x;
    const auto [n, r] = reduced_by_ln2(limited);
    const float power = power_of_two(limited == limited ? n : 0.f);
    const float y = r + r * r * exponential_rest(r);
    return power * y + (power - 1);
}

/// log(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)].
TIGHTSHIP_INLINE float log_of_one_plus(float f) {
    const float s = f / (2 + f), s2 = s * s;
    const float rest = s2 * polynomial(s2, 2.f / 3, 2.f / 5, 2.f / 7, 2.f / 9);
    return f - s * (f - rest);
}

TIGHTSHIP_INLINE float logarithm(float x) {
    const bool is_small = x < 0x1p-126f;
    const float scaled = is_small ? x * 0x1p24f : x;
    const uint32_t bits = std::bit_cast<uint32_t>(scaled); // signed, those of -0 would overflow
    const uint32_t above = bits - 0x3F3504F3u;             // a mantissa from sqrt(1/2)
    const int32_t exponent = std::bit_cast<int32_t>(above) >> 23;
    const float mantissa = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23));
    const float n = static_cast<float>(exponent) - (is_small ? 24.f : 0.f);
    const float y = n * kLn2High + (n * kLn2Low + log_of_one_plus(mantissa - 1));
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const float special =
        x == 0 ? -infinity : (x > 0 ? x : std::numeric_limits<float>::quiet_NaN());
    return x > 0 && x < infinity ? y : special;
}

/// log(1 + u) for u in [0, 1].
TIGHTSHIP_INLINE float log_of_up_to_two(float u) {
    const bool is_large = u > 0.414f;
    const float y = log_of_one_plus(is_large ? (u - 1) * 0.5f : u);
    return is_large ? kLn2High + (y + kLn2Low) : y;
}

TIGHTSHIP_INLINE float hyperbolic_tangent(float x) {
    const float t = exponential_less_one(-2 * std::fabs(x));
    return std::copysign(-t / (t + 2), x);
}

TIGHTSHIP_INLINE float error_function(float x) {
    const float magnitude = std::fabs(x);
    const float limited = magnitude > 4 ? 4.f : magnitude;
    const float x2 = x * x;
    const float near =
        x * polynomial(x2, 1.1283791671e+0f, -3.7612628832e-1f, 1.1283612350e-1f, -2.6854806104e-2f,
                       5.1900498107e-3f, -8.0243257083e-4f, 7.8981268577e-5f);
    const float q =
        polynomial(limited, 3.2984706722e-4f, 1.1271379023e+0f, 6.3806165778e-1f, 1.0318108358e-1f,
                   -2.1874696975e-2f, 2.9570916306e-3f, -1.8737009243e-4f);
    const float far = std::copysign(-exponential_less_one(-q), x);
    return magnitude < 1 ? near : far;
}

/// sin (quarter 0) or cos (quarter 1) of x, |x| <= 2^20.
TIGHTSHIP_INLINE float sine(float x, int32_t quarter) {
    const double wide = static_cast<double>(x);
    const double n = __builtin_rint(wide * 0.63661977236758134308);
    const float r = static_cast<float>(wide - n * kHalfPiHigh - n * kHalfPiLow);
    const int32_t place = static_cast<int32_t>(n) + quarter;
    const float r2 = r * r;
    const float odd = r + r * r2 * polynomial(r2, -1.f / 6, 1.f / 120, -1.f / 5040, 1.f / 362880);
    const float even =
        1 + r2 * polynomial(r2, -1.f / 2, 1.f / 24, -1.f / 720, 1.f / 40320, -1.f / 3628800);
    const float y = place & 1 ? even : odd;
    return place & 2 ? -y : y;
}

TIGHTSHIP_INLINE double exponential(double x) {
    return std::exp(x);
}
TIGHTSHIP_INLINE double exponential_less_one(double x) {
    return std::expm1(x);
}
TIGHTSHIP_INLINE double logarithm(double x) {
    return std::log(x);
}
TIGHTSHIP_INLINE double log_of_up_to_two(double u) {
    return std::log1p(u);
}
TIGHTSHIP_INLINE double hyperbolic_tangent(double x) {
    return std::tanh(x);
}
TIGHTSHIP_INLINE double error_function(double x) {
    return std::erf(x);
}

} // namespace tightship::kernels
