#include "tightship/kernels/elementwise/function_list.hpp"
#include "tightship/kernels/elementwise/integers.hpp"

#include <array>
#include <limits>

namespace tightship::kernels {

namespace {

template <class T> T within(double limit) {
    constexpr auto highest = std::numeric_limits<T>::max();
    constexpr auto lowest = std::numeric_limits<T>::min();
    if (limit >= static_cast<double>(highest))
        return highest;
    return limit <= static_cast<double>(lowest) ? lowest : static_cast<T>(limit);
}

/// `v` is the element; `low` and `high` are the parameters.
#define FUNCTIONS(F)                                                                               \
    F(Abs, v < 0 ? negated(v) : v)                                                                 \
    F(Neg, negated(v))                                                                             \
    F(Sign, static_cast<T>((v > 0) - (v < 0)))                                                     \
    F(BitwiseNot, static_cast<T>(~v))                                                              \
    F(Relu, v > 0 ? v : T(0))                                                                      \
    F(Limit, std::min(std::max(v, low), high))

enum Code { FUNCTIONS(TIGHTSHIP_CODE) };
constexpr std::array kNames{FUNCTIONS(TIGHTSHIP_NAME)};

template <class T> T negated(T v) {
    return static_cast<T>(Wrapping<T>{} - static_cast<Wrapping<T>>(v));
}

template <class T> struct Unary {
    static void apply(int code, const char *const *inputs, char *output, int64_t length,
                      const double *parameters) {
        const auto *x = reinterpret_cast<const T *>(inputs[0]);
        auto *y = reinterpret_cast<T *>(output);
        const T low = within<T>(parameters[0]), high = within<T>(parameters[1]);
#define CASE(name, body)                                                                           \
    case k##name:                                                                                  \
        return map_row(x, y, length, [=](T v) { return body; });
        switch (code) { FUNCTIONS(CASE) }
#undef CASE
    }
};

void negate(int, const char *const *inputs, char *output, int64_t length, const double *) {
    map_row(inputs[0], output, length, [](char v) { return static_cast<char>(v == 0); });
}

} // namespace

std::optional<Operation> unary_integer_operation(std::string_view name, ElementType type) {
    if (type == ElementType::kBool)
        return name == "Not" ? std::optional(Operation{negate, 0, type, type}) : std::nullopt;
    const int code = code_of(kNames, name);
    return code < 0 ? std::nullopt
                    : std::optional(Operation{for_integer<Unary>(type), code, type, type});
}

Names unary_integer_names() {
    return kNames;
}

} // namespace tightship::kernels
