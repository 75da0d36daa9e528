#include "tightship/kernels/elementwise/elementwise.hpp"
#include "tightship/kernels/elementwise/function_list.hpp"
#include "tightship/kernels/float_math.hpp"

#include <array>

namespace tightship::kernels {

namespace {

using enum ElementType;

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

/// Computes x tanh(log(1 + exp(x))), written with an exponential that cannot overflow.
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

/// Computes a Gelu by tanh, where 1 + tanh(z) is twice the logistic function of 2 z.
template <class Real> TIGHTSHIP_INLINE Real gelu_by_tanh(Real x) {
    constexpr Real factor = Real(2 * 0.79788456080286535588);
    return x * logistic(factor * x * (1 + Real(0.044715) * x * x));
}

/// `v` is the element; `a` and `b` are the parameters.
// clang-format off: it takes products in a macro for pointers
#define FUNCTIONS(F)                                                                               \
    F(Abs, std::fabs(v))                                                                           \
    F(Neg, -v)                                                                                     \
    F(Sign, v > 0 ? Real(1) : (v < 0 ? Real(-1) : v))                                              \
    F(Ceil, std::ceil(v))                                                                          \
    F(Floor, std::floor(v))                                                                        \
    F(Round, std::rint(v))                                                                         \
    F(Reciprocal, 1 / v)                                                                           \
    F(Sqrt, std::sqrt(v))                                                                          \
    F(Exp, exponential(v))                                                                         \
    F(Log, logarithm(v))                                                                           \
    F(Erf, error_function(v))                                                                      \
    F(Tanh, hyperbolic_tangent(v))                                                                 \
    F(Sigmoid, logistic(v))                                                                        \
    F(Softplus, positive_part(v) + log_of_up_to_two(exponential(-std::fabs(v))))                   \
    F(Softsign, v / (1 + std::fabs(v)))                                                            \
    F(HardSigmoid, limited(a * v + b, Real(0), Real(1)))                                           \
    F(HardSwish, v * limited(v * Real(1.0 / 6) + Real(0.5), Real(0), Real(1)))                     \
    F(LeakyRelu, v < 0 ? a * v : v)                                                                \
    F(Elu, positive_part(v) + a * exponential_less_one(negative_part(v)))                          \
    F(Selu, b * (positive_part(v) + a * exponential_less_one(negative_part(v))))                   \
    F(Celu, positive_part(v) + a * exponential_less_one(negative_part(v) / a))                     \
    F(ThresholdedRelu, v > a ? v : Real(0))                                                        \
    F(Gelu, gelu(v))                                                                               \
    F(GeluTanh, gelu_by_tanh(v))                                                                   \
    F(Swish, v * logistic(a * v))                                                                  \
    F(Mish, mish(v))                                                                               \
    F(Shrink, shrunk(v, a, b))                                                                     \
    F(Relu, positive_part(v))                                                                      \
    F(Limit, limited(v, a, b))
// clang-format on

enum Code { FUNCTIONS(TIGHTSHIP_CODE) };
constexpr std::array kNames{FUNCTIONS(TIGHTSHIP_NAME)};

template <class Real>
TIGHTSHIP_INLINE void apply(int code, const char *const *inputs, char *output, int64_t length,
                            const double *parameters) {
    const auto *x = reinterpret_cast<const Real *>(inputs[0]);
    auto *y = reinterpret_cast<Real *>(output);
    const Real a = static_cast<Real>(parameters[0]), b = static_cast<Real>(parameters[1]);
#define CASE(name, body)                                                                           \
    case k##name:                                                                                  \
        return map_row(x, y, length, [=](Real v) __attribute__((always_inline)) { return body; });
    switch (code) { FUNCTIONS(CASE) }
#undef CASE
}

TIGHTSHIP_CLONES void apply_float32(int code, const char *const *inputs, char *output,
                                    int64_t length, const double *parameters) {
    apply<float>(code, inputs, output, length, parameters);
}

void apply_float64(int code, const char *const *inputs, char *output, int64_t length,
                   const double *parameters) {
    apply<double>(code, inputs, output, length, parameters);
}

} // namespace

std::optional<Operation> unary_operation(std::string_view name, ElementType type) {
    const ElementType work = work_type(type);
    if (!is_float(work))
        return unary_integer_operation(name, type);
    if (const int code = code_of(kNames, name); code >= 0)
        return Operation{work == kFloat32 ? apply_float32 : apply_float64, code, work, work};
    return unary_library_operation(name, work);
}

Names unary_names() {
    return kNames;
}

} // namespace tightship::kernels
