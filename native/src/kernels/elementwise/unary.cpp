#include "tightship/kernels/elementwise/elementwise.hpp"
#include "tightship/kernels/float_math.hpp"

#include <array>

namespace tightship::kernels {

namespace {

using enum ElementType;

constexpr std::string_view kFloatNames[] = {"Abs",        "Neg",
                                            "Sign",       "Ceil",
                                            "Floor",      "Round",
                                            "Reciprocal", "Sqrt",
                                            "Exp",        "Log",
                                            "Erf",        "Tanh",
                                            "Sigmoid",    "Softplus",
                                            "Softsign",   "HardSigmoid",
                                            "HardSwish",  "LeakyRelu",
                                            "Elu",        "Selu",
                                            "Celu",       "ThresholdedRelu",
                                            "Gelu",       "GeluTanh",
                                            "Swish",      "Mish",
                                            "Shrink",     "Relu",
                                            "Limit"};

template <class Real> TIGHTSHIP_INLINE Real logistic(Real x) {
    const Real e = exponential(-std::fabs(x));
    const Real y = 1 / (1 + e);
    return x < 0 ? e * y : y;
}

template <class Real> TIGHTSHIP_INLINE Real positive_part(Real x) {
    return x > 0 || x != x ? x : Real(0);
}

template <class Real> TIGHTSHIP_INLINE Real negative_part(Real x) {
    return x < 0 ? x : Real(0);
}

template <class Real> TIGHTSHIP_INLINE Real limited(Real x, Real low, Real high) {
    const Real raised = x < low || low != low ? low : x;
    return raised > high || high != high ? high : raised;
}

/// x tanh(log(1 + exp(x))), written with an exponential that cannot overflow.
template <class Real> TIGHTSHIP_INLINE Real mish(Real x) {
    const Real u = exponential(-std::fabs(x));
    const Real numerator = x < 0 ? u * (u + 2) : 1 + 2 * u;
    return x * (numerator / (numerator + (x < 0 ? Real(2) : 2 * u * u)));
}

template <class Real> TIGHTSHIP_INLINE Real shrunk(Real x, Real bias, Real limit) {
    return x < -limit ? x + bias : (x > limit ? x - bias : Real(0));
}

template <class Real> TIGHTSHIP_INLINE Real gelu(Real x) {
    return (Real(0.5) * x) * (1 + error_function(x * Real(0.70710678118654752440)));
}

/// 1 + tanh(z) is twice the logistic function of 2 z.
template <class Real> TIGHTSHIP_INLINE Real gelu_by_tanh(Real x) {
    constexpr Real factor = Real(2 * 0.79788456080286535588);
    return x * logistic(factor * x * (1 + Real(0.044715) * x * x));
}

template <class Real>
TIGHTSHIP_INLINE void apply_rounding(int code, const Real *x, Real *y, int64_t length) {
#define CASE(number, body)                                                                         \
    case number:                                                                                   \
        return map_row(x, y, length, [=](Real v) __attribute__((always_inline)) { return body; })
    switch (code) {
        CASE(0, std::fabs(v));
        CASE(1, -v);
        CASE(2, v > 0 ? Real(1) : (v < 0 ? Real(-1) : v));
        CASE(3, std::ceil(v));
        CASE(4, std::floor(v));
        CASE(5, std::rint(v));
        CASE(6, 1 / v);
        CASE(7, std::sqrt(v));
        CASE(8, exponential(v));
        CASE(9, logarithm(v));
        CASE(10, error_function(v));
        CASE(11, hyperbolic_tangent(v));
    }
}

template <class Real>
TIGHTSHIP_INLINE void apply_activation(int code, const Real *x, Real *y, int64_t length,
                                       const double *parameters) {
    const Real a = static_cast<Real>(parameters[0]), b = static_cast<Real>(parameters[1]);
    switch (code) {
        CASE(12, logistic(v));
        CASE(13, positive_part(v) + log_of_up_to_two(exponential(-std::fabs(v))));
        CASE(14, v / (1 + std::fabs(v)));
        CASE(15, limited(a * v + b, Real(0), Real(1)));
        CASE(16, v * limited(v * Real(1.0 / 6) + Real(0.5), Real(0), Real(1)));
        CASE(17, v < 0 ? a * v : v);
        CASE(18, positive_part(v) + a * exponential_less_one(negative_part(v)));
        CASE(19, b * (positive_part(v) + a * exponential_less_one(negative_part(v))));
        CASE(20, positive_part(v) + a * exponential_less_one(negative_part(v) / a));
        CASE(21, v > a ? v : Real(0));
        CASE(22, gelu(v));
        CASE(23, gelu_by_tanh(v));
        CASE(24, v * logistic(a * v));
        CASE(25, mish(v));
        CASE(26, shrunk(v, a, b));
        CASE(27, positive_part(v));
        CASE(28, limited(v, a, b));
    }
#undef CASE
}

TIGHTSHIP_CLONES void apply_float32(int code, const char *const *inputs, char *output,
                                    int64_t length, const double *parameters) {
    const auto *x = reinterpret_cast<const float *>(inputs[0]);
    auto *y = reinterpret_cast<float *>(output);
    if (code < 12)
        apply_rounding(code, x, y, length);
    else
        apply_activation(code, x, y, length, parameters);
}

void apply_float64(int code, const char *const *inputs, char *output, int64_t length,
                   const double *parameters) {
    const auto *x = reinterpret_cast<const double *>(inputs[0]);
    auto *y = reinterpret_cast<double *>(output);
    if (code < 12)
        apply_rounding(code, x, y, length);
    else
        apply_activation(code, x, y, length, parameters);
}

} // namespace

std::optional<Operation> unary_operation(std::string_view name, ElementType type) {
    const ElementType work = work_type(type);
    if (!is_float(work))
        return unary_integer_operation(name, type);
    for (int code = 0; code < static_cast<int>(std::size(kFloatNames)); ++code)
        if (kFloatNames[code] == name)
            return Operation{work == kFloat32 ? apply_float32 : apply_float64, code, work, work};
    return unary_library_operation(name, work);
}

} // namespace tightship::kernels
