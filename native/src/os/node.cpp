#include "tightship/os/os.hpp"

#include <cstdint>
#include <filesystem>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tightship::os {

namespace {

constexpr int kNodeCount = 1024;
#ifdef SYS_mbind
constexpr int kPreferred = 1; // MPOL_PREFERRED of the system's headers
#endif

} // namespace

bool has_node(int node) {
    if (node < 0 || node >= kNodeCount)
        return false;
    std::error_code unknown;
    return std::filesystem::exists("/sys/devices/system/node/node" + std::to_string(node), unknown);
}

void prefer_node(void *pointer, size_t size_bytes, int node) {
#ifdef SYS_mbind
    uint64_t nodes[kNodeCount / 64] = {};
    nodes[node / 64] = uint64_t{1} << node % 64;
    syscall(SYS_mbind, pointer, size_bytes, kPreferred, nodes, kNodeCount, 0);
#else
    (void)pointer, (void)size_bytes, (void)node;
#endif
}

void fill(void *pointer, size_t size_bytes) {
#ifdef MADV_POPULATE_WRITE
    if (madvise(pointer, size_bytes, MADV_POPULATE_WRITE) == 0)
        return;
#endif
    for (size_t offset = 0; offset < size_bytes; offset += page_size())
        static_cast<volatile char *>(pointer)[offset] = 0;
}

bool lock(void *pointer, size_t size_bytes) {
    return mlock(pointer, size_bytes) == 0;
}

} // namespace tightship::os
