/// Macros and loops by which the compiler makes vector instructions for several generations of
/// processors.
#pragma once

#include <cstdint>

/// Declares a function that is compiled for each level of x86-64 and chosen when the core is
/// loaded; functions that it calls must be inline_always to be compiled with it.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) &&       \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TIGHTSHIP_CLONES                                                                           \
    __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define TIGHTSHIP_CLONES
#endif

#define TIGHTSHIP_INLINE [[gnu::always_inline]] inline

/// Precedes a loop whose iterations each read and write one position, the same for all operands, so
/// that the compiler may assume no dependence between them.
#if defined(__GNUC__) && !defined(__clang__)
#define TIGHTSHIP_INDEPENDENT _Pragma("GCC ivdep")
#elif defined(__clang__)
#define TIGHTSHIP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TIGHTSHIP_INDEPENDENT
#endif

namespace tightship::kernels {

/// Computes y[i] = f(x[i]); y may be x.
template <class X, class Y, class F>
TIGHTSHIP_INLINE void map_row(const X *x, Y *y, int64_t length, F f) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index)
        y[index] = f(x[index]);
}

/// Computes z[i] = f(x[i], y[i]); z may be x or y.
template <class X, class Y, class Z, class F>
TIGHTSHIP_INLINE void zip_row(const X *x, const Y *y, Z *z, int64_t length, F f) {
    TIGHTSHIP_INDEPENDENT
    for (int64_t index = 0; index < length; ++index)
        z[index] = f(x[index], y[index]);
}

} // namespace tightship::kernels
