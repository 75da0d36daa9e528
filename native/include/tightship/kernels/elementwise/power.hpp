/// Powers in float32 computed in float64, without branches or tables, so that loops over them
/// become vector instructions; in float64 they are the library's.
///
/// log is the series of 2 artanh(f / (2 + f)) and exp a Taylor series after a reduction by
/// multiples of ln 2, both to about 1e-11, so that results are rounded almost correctly.
#pragma once

#include "tightship/kernels/float_math.hpp"

namespace tightship::kernels {

constexpr double kRounding = 0x1.8p52; ///< added, leaves whole numbers in the lowest bits

/// log(x) for normal x > 0.
TIGHTSHIP_INLINE double logarithm_of_normal(double x) {
    constexpr int64_t kRootHalf = 0x3FE6A09E667F3BCD;
    const int64_t bits = std::bit_cast<int64_t>(x);
    const int64_t exponent = (bits - kRootHalf) & ~((int64_t{1} << 52) - 1);
    const double f = std::bit_cast<double>(bits - exponent) - 1;
    const uint64_t biased = static_cast<uint64_t>(exponent + (int64_t{1} << 62)) >> 52;
    const double n = std::bit_cast<double>(biased | 0x4330000000000000) - (0x1p52 + 1024);
    const double s = f / (2 + f), s2 = s * s;
    const double series = polynomial(s2, 2., 2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13);
    return n * 0.69314718055994530942 + s * series;
}

/// exp(x) rounded to float32 later: out of its range, any number out of its range.
TIGHTSHIP_INLINE double exponential_of_narrow(double x) {
    const double limited = x > 90 ? 90. : (x < -110 ? -110. : x); // a NaN passes
    const double shifted = limited * 1.44269504088896340736 + kRounding;
    const double r = limited - (shifted - kRounding) * 0.69314718055994530942;
    const double y = polynomial(r, 1., 1., 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040,
                                1. / 40320, 1. / 362880);
    return y * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
}

/// Follows the rules of C for zeros, infinities, NaNs and negative bases.
TIGHTSHIP_INLINE float power(float x, float y) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const float base = std::fabs(x);
    const bool is_finite = base > 0 && base < infinity;
    const double zero_or_infinity = base == 0 ? -HUGE_VAL : static_cast<double>(base);
    const double found = logarithm_of_normal(is_finite ? static_cast<double>(base) : 1.);
    const double wide =
        exponential_of_narrow((is_finite ? found : zero_or_infinity) * static_cast<double>(y));
    const float magnitude = static_cast<float>(wide);
    const float half = y * 0.5f;
    const bool is_whole = __builtin_floorf(y) == y,
               is_odd = is_whole && __builtin_floorf(half) != half;
    const float with_sign = is_odd ? std::copysign(magnitude, x) : magnitude;
    const bool is_undefined = x < 0 && is_finite && !is_whole;
    const float z = is_undefined ? std::numeric_limits<float>::quiet_NaN() : with_sign;
    const bool is_one = y == 0 || x == 1 || (base == 1 && std::fabs(y) == infinity);
    return is_one ? 1.f : z;
}

TIGHTSHIP_INLINE double power(double x, double y) {
    return std::pow(x, y);
}

/// Square root, except of negative zero and infinity, where powers give other results.
template <class Real> TIGHTSHIP_INLINE Real root(Real x) {
    constexpr Real infinity = std::numeric_limits<Real>::infinity();
    return std::sqrt(x == -infinity ? infinity : x + Real(0));
}

} // namespace tightship::kernels
