#include "tightship/kernels/elementwise/integers.hpp"

#include <limits>

namespace tightship::kernels {

namespace {

constexpr std::string_view kNames[] = {"Abs", "Neg", "Sign", "BitwiseNot", "Relu", "Limit"};

template <class T> T within(double limit) {
    constexpr auto highest = std::numeric_limits<T>::max();
    constexpr auto lowest = std::numeric_limits<T>::min();
    if (limit >= static_cast<double>(highest))
        return highest;
    return limit <= static_cast<double>(lowest) ? lowest : static_cast<T>(limit);
}

template <class T> struct Unary {
    static void apply(int code, const char *const *inputs, char *output, int64_t length,
                      const double *parameters) {
        using Wide = Wrapping<T>;
        const auto *x = reinterpret_cast<const T *>(inputs[0]);
        auto *y = reinterpret_cast<T *>(output);
        const auto negated = [](T v) { return static_cast<T>(Wide{} - static_cast<Wide>(v)); };
        switch (code) {
        case 0:
            return map_row(x, y, length, [=](T v) { return v < 0 ? negated(v) : v; });
        case 1:
            return map_row(x, y, length, negated);
        case 2:
            return map_row(x, y, length, [](T v) { return static_cast<T>((v > 0) - (v < 0)); });
        case 3:
            return map_row(x, y, length, [](T v) { return static_cast<T>(~v); });
        case 4:
            return map_row(x, y, length, [](T v) { return v > 0 ? v : T(0); });
        default: {
            const T low = within<T>(parameters[0]), high = within<T>(parameters[1]);
            map_row(x, y, length, [=](T v) { return std::min(std::max(v, low), high); });
        }
        }
    }
};

void negate(int, const char *const *inputs, char *output, int64_t length, const double *) {
    map_row(inputs[0], output, length, [](char v) { return static_cast<char>(v == 0); });
}

} // namespace

std::optional<Operation> unary_integer_operation(std::string_view name, ElementType type) {
    if (type == ElementType::kBool)
        return name == "Not" ? std::optional(Operation{negate, 0, type, type}) : std::nullopt;
    for (int code = 0; code < static_cast<int>(std::size(kNames)); ++code)
        if (kNames[code] == name)
            return Operation{for_integer<Unary>(type), code, type, type};
    return std::nullopt;
}

} // namespace tightship::kernels
