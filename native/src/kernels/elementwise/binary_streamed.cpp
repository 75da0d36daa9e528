#include "tightship/kernels/elementwise/elementwise.hpp"

#include "cpu/this_cpu.hpp"

#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tightship::kernels {

#if defined(__x86_64__)

namespace {

#define TARGET [[gnu::target("avx512f")]]

/// Writes a whole line at once, because partial lines are written one by one, slower than through a
/// cache.
#define STREAMED(name, vector, sign)                                                               \
    TARGET void name(int, const char *const *inputs, char *output, int64_t length,                 \
                     const double *) {                                                             \
        const auto *x = reinterpret_cast<const float *>(inputs[0]);                                \
        const auto *y = reinterpret_cast<const float *>(inputs[1]);                                \
        auto *z = reinterpret_cast<float *>(output);                                               \
        int64_t index = 0;                                                                         \
        for (; index + 16 <= length; index += 16)                                                  \
            _mm512_stream_ps(z + index,                                                            \
                             vector(_mm512_loadu_ps(x + index), _mm512_loadu_ps(y + index)));      \
        for (; index < length; ++index)                                                            \
            z[index] = x[index] sign y[index];                                                     \
        _mm_sfence();                                                                              \
    }
STREAMED(add, _mm512_add_ps, +)
STREAMED(subtract, _mm512_sub_ps, -)
STREAMED(multiply, _mm512_mul_ps, *)
STREAMED(divide, _mm512_div_ps, /)
#undef STREAMED
#undef TARGET

} // namespace

Operation::Apply streamed_operation(std::string_view name, ElementType type) {
    const bool has_lines = for_this_cpu("", static_cast<const char *>(nullptr),
                                        static_cast<const char *>(nullptr)) != nullptr;
    if (!has_lines || type != ElementType::kFloat32)
        return nullptr;
    if (name == "Add")
        return add;
    if (name == "Sub")
        return subtract;
    if (name == "Mul")
        return multiply;
    return name == "Div" ? divide : nullptr;
}

#else

Operation::Apply streamed_operation(std::string_view, ElementType) {
    return nullptr;
}

#endif

} // namespace tightship::kernels
