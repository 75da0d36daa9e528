#include "tightship/os/os.hpp"

#include "tightship/os/limits.hpp"

#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tightship::os {

int memory_file(size_t size_bytes) {
#ifdef MFD_CLOEXEC
    const int file = memfd_create("tightship", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file >= 0 && ftruncate(file, static_cast<off_t>(size_bytes)) == 0)
        return file;
    if (file >= 0)
        close(file);
#else
    (void)size_bytes;
#endif
    return -1;
}

int unnamed_file(const std::string &folder, size_t size_bytes) {
    std::string name = folder + "/tightship-XXXXXX";
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0)
        return -1;
    unlink(name.c_str());
    if (posix_fallocate(file, 0, static_cast<off_t>(size_bytes)) == 0)
        return file;
    close(file);
    return -1;
}

void close_file(int file) {
    close(file);
}

void *map_file(int file, size_t size_bytes, size_t alignment) {
    if (size_bytes + alignment < size_bytes || !may_map(2))
        return nullptr;
    // Reserve addresses first, with slack to align in; then map the file over the aligned part.
    void *reserved = mmap(nullptr, size_bytes + alignment, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return nullptr;
    auto *start = static_cast<char *>(reserved);
    const size_t before = -reinterpret_cast<uintptr_t>(start) % alignment;
    void *pointer =
        mmap(start + before, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    if (pointer == MAP_FAILED) {
        munmap(start, size_bytes + alignment);
        return nullptr;
    }
    if (before > 0)
        munmap(start, before);
    munmap(start + before + size_bytes, alignment - before);
    return pointer;
}

} // namespace tightship::os
