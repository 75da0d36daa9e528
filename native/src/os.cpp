#include "tightship/os.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace tightship::os {

size_t page_size() {
    static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

void *map(size_t size_bytes) {
    void *pointer =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pointer == MAP_FAILED ? nullptr : pointer;
}

void unmap(void *pointer, size_t size_bytes) {
    munmap(pointer, size_bytes);
}

} // namespace tightship::os
