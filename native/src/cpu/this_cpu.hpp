/// Instruction sets of this processor, by which callers choose among loops compiled once for each.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tightship::kernels {

template <class Loop> Loop *for_this_cpu(Loop *avx512, Loop *avx2, Loop *portable) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        return avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return avx2;
#endif
    return portable;
}

/// Returns whether the processor sums products of four bytes at once, in vectors of 64 (VNNI).
inline bool has_dot_products() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

/// Returns whether the processor multiplies tiles of bfloat16 (AMX) and the system permits it.
inline bool has_tiles() {
#if defined(__x86_64__)
    constexpr unsigned kBfloat16 = 1u << 22, kTiles = 1u << 24;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kBfloat16) != 0 &&
           (edx & kTiles) != 0 && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}

/// Returns whether the processor multiplies tiles of bytes too.
inline bool has_integer_tiles() {
#if defined(__x86_64__)
    constexpr unsigned kBytes = 1u << 25;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return has_tiles() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
           (edx & kBytes) != 0;
#else
    return false;
#endif
}

/// Returns whether the processor's string instruction copies as fast as memory allows. On AMD's
/// processors it bypasses the caches, at twice the rate of four streams; no others were seen to.
inline bool copies_strings() {
#if defined(__x86_64__)
    constexpr unsigned kEnhanced = 1u << 9;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __builtin_cpu_is("amd") && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
           (ebx & kEnhanced) != 0;
#else
    return false;
#endif
}

} // namespace tightship::kernels
