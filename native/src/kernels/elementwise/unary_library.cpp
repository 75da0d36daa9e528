#include "tightship/kernels/elementwise/elementwise.hpp"
#include "tightship/kernels/float_math.hpp"

namespace tightship::kernels {

namespace {

using enum ElementType;

constexpr float kReducible = 0x1p20f; ///< the largest argument that `sine` takes

/// Sin, Cos and Tan by the vector loop, which not every argument may take.
enum Trigonometric { kSin, kCos, kTan };

TIGHTSHIP_CLONES bool trigonometric_float32(int code, const float *x, float *y, int64_t length) {
    bool fits = true;
    for (int64_t index = 0; index < length; ++index)
        fits &= std::fabs(x[index]) <= kReducible;
    if (!fits)
        return false;
    switch (code) {
    case kSin:
        map_row(x, y, length, [](float v) __attribute__((always_inline)) { return sine(v, 0); });
        break;
    case kCos:
        map_row(x, y, length, [](float v) __attribute__((always_inline)) { return sine(v, 1); });
        break;
    default:
        map_row(x, y, length,
                [](float v) __attribute__((always_inline)) { return sine(v, 0) / sine(v, 1); });
    }
    return true;
}

template <class Real>
void apply(int code, const char *const *inputs, char *output, int64_t length, const double *) {
    const auto *x = reinterpret_cast<const Real *>(inputs[0]);
    auto *y = reinterpret_cast<Real *>(output);
    if constexpr (std::is_same_v<Real, float>)
        if (code <= kTan && trigonometric_float32(code, x, y, length))
            return;
    using Function = Real (*)(Real);
    constexpr Function functions[] = {std::sin,   std::cos,   std::tan,  std::asin,
                                      std::acos,  std::atan,  std::sinh, std::cosh,
                                      std::asinh, std::acosh, std::atanh};
    for (int64_t index = 0; index < length; ++index)
        y[index] = functions[code](x[index]);
}

constexpr std::string_view kNames[] = {"Sin",  "Cos",  "Tan",   "Asin",  "Acos", "Atan",
                                       "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"};

template <class Real>
TIGHTSHIP_INLINE void classify(int code, const Real *x, uint8_t *y, int64_t length) {
    constexpr Real infinity = std::numeric_limits<Real>::infinity();
#define CASE(number, body)                                                                         \
    case number:                                                                                   \
        return map_row(x, y, length,                                                               \
                       [](Real v) __attribute__((always_inline)) { return uint8_t(body); })
    switch (code) {
        CASE(0, v != v);
        CASE(1, std::fabs(v) == infinity);
        CASE(2, v == infinity);
        CASE(3, v == -infinity);
    }
#undef CASE
}

void classify_float32(int code, const char *const *inputs, char *output, int64_t length,
                      const double *) {
    classify(code, reinterpret_cast<const float *>(inputs[0]), reinterpret_cast<uint8_t *>(output),
             length);
}

void classify_float64(int code, const char *const *inputs, char *output, int64_t length,
                      const double *) {
    classify(code, reinterpret_cast<const double *>(inputs[0]), reinterpret_cast<uint8_t *>(output),
             length);
}

constexpr std::string_view kClasses[] = {"IsNaN", "IsInf", "IsPositiveInf", "IsNegativeInf"};

} // namespace

std::optional<Operation> unary_library_operation(std::string_view name, ElementType work) {
    for (int code = 0; code < static_cast<int>(std::size(kNames)); ++code)
        if (kNames[code] == name)
            return Operation{work == kFloat32 ? apply<float> : apply<double>, code, work, work};
    for (int code = 0; code < static_cast<int>(std::size(kClasses)); ++code)
        if (kClasses[code] == name)
            return Operation{work == kFloat32 ? classify_float32 : classify_float64, code, work,
                             kBool};
    return std::nullopt;
}

} // namespace tightship::kernels
