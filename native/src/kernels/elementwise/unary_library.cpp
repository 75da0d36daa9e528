#include "tightship/kernels/elementwise/elementwise.hpp"
#include "tightship/kernels/elementwise/function_list.hpp"
#include "tightship/kernels/float_math.hpp"

#include <array>

namespace tightship::kernels {

namespace {

using enum ElementType;

constexpr float kReducible = 0x1p20f; ///< the largest argument that `sine` takes

/// Functions up to Tan have a vector loop, whose range does not cover every argument.
#define FUNCTIONS(F)                                                                               \
    F(Sin, std::sin)                                                                               \
    F(Cos, std::cos)                                                                               \
    F(Tan, std::tan)                                                                               \
    F(Asin, std::asin)                                                                             \
    F(Acos, std::acos)                                                                             \
    F(Atan, std::atan)                                                                             \
    F(Sinh, std::sinh)                                                                             \
    F(Cosh, std::cosh)                                                                             \
    F(Asinh, std::asinh)                                                                           \
    F(Acosh, std::acosh)                                                                           \
    F(Atanh, std::atanh)

enum Code { FUNCTIONS(TIGHTSHIP_CODE) };
constexpr std::array kNames{FUNCTIONS(TIGHTSHIP_NAME)};

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
#define FUNCTION(name, function) function,
    constexpr Function functions[] = {FUNCTIONS(FUNCTION)};
#undef FUNCTION
    for (int64_t index = 0; index < length; ++index)
        y[index] = functions[code](x[index]);
}

#define CLASSES(F)                                                                                 \
    F(IsNaN, v != v)                                                                               \
    F(IsInf, std::fabs(v) == infinity)                                                             \
    F(IsPositiveInf, v == infinity)                                                                \
    F(IsNegativeInf, v == -infinity)

enum Class { CLASSES(TIGHTSHIP_CODE) };
constexpr std::array kClasses{CLASSES(TIGHTSHIP_NAME)};

template <class Real>
TIGHTSHIP_INLINE void classify(int code, const Real *x, uint8_t *y, int64_t length) {
    constexpr Real infinity = std::numeric_limits<Real>::infinity();
#define CASE(name, body)                                                                           \
    case k##name:                                                                                  \
        return map_row(x, y, length,                                                               \
                       [](Real v) __attribute__((always_inline)) { return uint8_t(body); });
    switch (code) { CLASSES(CASE) }
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

} // namespace

std::optional<Operation> unary_library_operation(std::string_view name, ElementType work) {
    if (const int code = code_of(kNames, name); code >= 0)
        return Operation{work == kFloat32 ? apply<float> : apply<double>, code, work, work};
    if (const int code = code_of(kClasses, name); code >= 0)
        return Operation{work == kFloat32 ? classify_float32 : classify_float64, code, work, kBool};
    return std::nullopt;
}

Names unary_library_names() {
    return kNames;
}

Names class_names() {
    return kClasses;
}

} // namespace tightship::kernels
