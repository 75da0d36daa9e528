/// Which of the loops that are compiled once for each instruction set this processor runs.
#pragma once

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

} // namespace tightship::kernels
