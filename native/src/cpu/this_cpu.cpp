#include "this_cpu.hpp"

#include "tightship/kernel.hpp"

namespace tightship {

std::string kernel_cpu() {
    std::string named = kernels::for_this_cpu("avx512", "avx2", "portable");
    return kernels::has_tiles() ? named + " amx" : named;
}

} // namespace tightship
