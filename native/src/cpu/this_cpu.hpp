/// Which of the loops that are compiled once for each instruction set this processor runs.
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

/// Whether it multiplies tiles of bfloat16 (AMX), if the system lets it.
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

/// Whether its own instruction copies long strings as fast as memory takes them. Those of AMD write
/// past the caches by it, at twice the rate of four streams; others were not seen to.
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
