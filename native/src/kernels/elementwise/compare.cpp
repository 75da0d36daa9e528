#include "tightship/kernels/elementwise/elementwise.hpp"
#include "tightship/kernels/elementwise/function_list.hpp"

#include <array>

namespace tightship::kernels {

namespace {

using enum ElementType;

#define SIGNS(F) F(Equal, ==) F(Less, <) F(LessOrEqual, <=)
/// Comparisons; those without a sign are computed with exchanged operands.
#define FUNCTIONS(F) SIGNS(F) F(Greater, ) F(GreaterOrEqual, )

enum Code { FUNCTIONS(TIGHTSHIP_CODE) };
constexpr std::array kNames{FUNCTIONS(TIGHTSHIP_NAME)};

template <class T>
TIGHTSHIP_INLINE void compared(int code, const char *const *inputs, char *output, int64_t length) {
    const auto *x = reinterpret_cast<const T *>(inputs[0]);
    const auto *y = reinterpret_cast<const T *>(inputs[1]);
    if (code == kGreater || code == kGreaterOrEqual) {
        std::swap(x, y);
        code = code == kGreater ? kLess : kLessOrEqual;
    }
#define CASE(name, sign)                                                                           \
    case k##name:                                                                                  \
        return zip_row(x, y, output, length,                                                       \
                       [](T a, T b) __attribute__((always_inline)) { return char(a sign b); });
    switch (code) { SIGNS(CASE) }
#undef CASE
}

#define COMPARISON(name, T)                                                                        \
    TIGHTSHIP_CLONES void name(int code, const char *const *inputs, char *output, int64_t length,  \
                               const double *) {                                                   \
        compared<T>(code, inputs, output, length);                                                 \
    }
COMPARISON(int8, int8_t)
COMPARISON(int16, int16_t)
COMPARISON(int32, int32_t)
COMPARISON(int64, int64_t)
COMPARISON(uint8, uint8_t)
COMPARISON(uint16, uint16_t)
COMPARISON(uint32, uint32_t)
COMPARISON(uint64, uint64_t)
COMPARISON(float32, float)
COMPARISON(float64, double)
#undef COMPARISON

} // namespace

std::optional<Operation> compare_operation(std::string_view name, ElementType type) {
    constexpr Operation::Apply functions[kElementTypes] = {
        uint8,  int8,   int16,   int32,   int64,   uint8,  uint16,
        uint32, uint64, nullptr, nullptr, float32, float64};
    const int code = code_of(kNames, name);
    return code < 0
               ? std::nullopt
               : std::optional(Operation{functions[static_cast<int>(type)], code, type, kBool});
}

Names compare_names() {
    return kNames;
}

} // namespace tightship::kernels
