#include "tightship/resource/shared.hpp"

#include "tightship/os/limits.hpp"
#include "tightship/os/os.hpp"

#include <algorithm>

namespace tightship::resource {

namespace {

constexpr size_t kFilesLeft = 256;

} // namespace

int SharedResource::descriptor_of(const void *pointer) const {
    const std::lock_guard lock(files_.mutex);
    const auto found = files_.descriptors.find(reinterpret_cast<uintptr_t>(pointer));
    return found == files_.descriptors.end() ? -1 : found->second;
}

void *SharedResource::map(size_t size_bytes, size_t alignment) {
    const int file = open_file(size_bytes);
    if (file < 0)
        return nullptr;
    // Files get the lowest free number; the last numbers are left to the rest of the process.
    const size_t limit = os::file_limit();
    has_files_ = static_cast<size_t>(file) < limit - std::min(limit / 4, kFilesLeft);
    void *pointer = has_files_ ? os::map_file(file, size_bytes, alignment) : nullptr;
    if (pointer == nullptr) {
        os::close_file(file);
        return nullptr;
    }
    const std::lock_guard lock(files_.mutex);
    files_.descriptors.emplace(reinterpret_cast<uintptr_t>(pointer), file);
    return pointer;
}

std::string SharedResource::refusal(size_t size_bytes, size_t alignment) const {
    if (has_files_)
        return PageResource::refusal(size_bytes, alignment);
    return "each block is an open file, and few are left of the " +
           std::to_string(os::file_limit()) +
           " that the process may have. Use fewer and larger blocks, or raise RLIMIT_NOFILE.";
}

/// Removes the entry first, because once unmapped, the address may become another block's.
void SharedResource::unmap(void *pointer, size_t size_bytes) {
    {
        const std::lock_guard lock(files_.mutex);
        const auto found = files_.descriptors.find(reinterpret_cast<uintptr_t>(pointer));
        os::close_file(found->second);
        files_.descriptors.erase(found);
    }
    os::unmap(pointer, size_bytes);
}

int SegmentResource::open_file(size_t size_bytes) {
    // The system would make a file of any size, and end the process when its pages are touched.
    return size_bytes <= os::memory_bytes() ? os::memory_file(size_bytes) : -1;
}

int FileResource::open_file(size_t size_bytes) {
    return os::unnamed_file(folder_, size_bytes);
}

} // namespace tightship::resource
