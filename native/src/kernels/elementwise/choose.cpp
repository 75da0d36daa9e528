#include "tightship/kernels/elementwise/elementwise.hpp"

namespace tightship::kernels {

namespace {

using enum ElementType;

template <class T>
TIGHTSHIP_INLINE void chosen(const char *const *inputs, char *output, int64_t length) {
    const auto *condition = reinterpret_cast<const uint8_t *>(inputs[0]);
    const auto *x = reinterpret_cast<const T *>(inputs[1]);
    const auto *y = reinterpret_cast<const T *>(inputs[2]);
    auto *z = reinterpret_cast<T *>(output);
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index) {
        const T a = x[index], b = y[index];
        z[index] = condition[index] ? a : b;
    }
}

/// Clamps; a NaN among the three is the result, and the upper limit wins over the lower.
template <class T>
TIGHTSHIP_INLINE void clipped(const char *const *inputs, char *output, int64_t length) {
    const auto *x = reinterpret_cast<const T *>(inputs[0]);
    const auto *low = reinterpret_cast<const T *>(inputs[1]);
    const auto *high = reinterpret_cast<const T *>(inputs[2]);
    auto *z = reinterpret_cast<T *>(output);
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index) {
        const T a = x[index], b = low[index], c = high[index];
        const T raised = a > b || a != a ? a : b;
        z[index] = raised < c || raised != raised ? raised : c;
    }
}

#define TERNARY(name, function, T)                                                                 \
    TIGHTSHIP_CLONES void name(int, const char *const *inputs, char *output, int64_t length,       \
                               const double *) {                                                   \
        function<T>(inputs, output, length);                                                       \
    }
TERNARY(where_8, chosen, uint8_t)
TERNARY(where_16, chosen, uint16_t)
TERNARY(where_32, chosen, uint32_t)
TERNARY(where_64, chosen, uint64_t)
TERNARY(clip_int8, clipped, int8_t)
TERNARY(clip_int16, clipped, int16_t)
TERNARY(clip_int32, clipped, int32_t)
TERNARY(clip_int64, clipped, int64_t)
TERNARY(clip_uint8, clipped, uint8_t)
TERNARY(clip_uint16, clipped, uint16_t)
TERNARY(clip_uint32, clipped, uint32_t)
TERNARY(clip_uint64, clipped, uint64_t)
TERNARY(clip_float32, clipped, float)
TERNARY(clip_float64, clipped, double)
#undef TERNARY

} // namespace

std::optional<Operation> choose_operation(std::string_view name, ElementType type) {
    if (name == "Clip") {
        constexpr Operation::Apply functions[kElementTypes] = {
            nullptr,    clip_int8,    clip_int16,  clip_int32,  clip_int64,
            clip_uint8, clip_uint16,  clip_uint32, clip_uint64, nullptr,
            nullptr,    clip_float32, clip_float64};
        const ElementType work = work_type(type);
        const auto apply = functions[static_cast<int>(work)];
        return apply ? std::optional(Operation{apply, 0, work, work}) : std::nullopt;
    }
    if (name != "Where")
        return std::nullopt;
    switch (item_bytes(type)) {
    case 1:
        return Operation{where_8, 0, type, type};
    case 2:
        return Operation{where_16, 0, type, type};
    case 4:
        return Operation{where_32, 0, type, type};
    default:
        return Operation{where_64, 0, type, type};
    }
}

} // namespace tightship::kernels
