#include "tightship/resource/sized_blocks.hpp"

#include <algorithm>
#include <cstring>

namespace tightship::resource::sized {

namespace {

/// Returns the address that holds a block's size, at the start of the resource's block.
size_t *size_before(void *block) {
    return reinterpret_cast<size_t *>(static_cast<char *>(block) - kAlignment);
}

} // namespace

void *allocate(MemoryResource &resource, size_t size_bytes) {
    if (size_bytes > SIZE_MAX - kAlignment)
        return nullptr;
    auto *given = static_cast<size_t *>(resource.allocate(size_bytes + kAlignment, kAlignment));
    if (given == nullptr)
        return nullptr;
    *given = size_bytes;
    return reinterpret_cast<char *>(given) + kAlignment;
}

void *allocate_zeroed(MemoryResource &resource, size_t count, size_t element_bytes) {
    if (element_bytes != 0 && count > SIZE_MAX / element_bytes)
        return nullptr;
    const size_t size_bytes = count * element_bytes;
    void *block = allocate(resource, size_bytes);
    return block == nullptr ? nullptr : std::memset(block, 0, size_bytes);
}

void *reallocate(MemoryResource &resource, void *block, size_t size_bytes) {
    void *moved = allocate(resource, size_bytes);
    if (moved != nullptr && block != nullptr) {
        std::memcpy(moved, block, std::min(size_bytes, *size_before(block)));
        release(resource, block);
    }
    return moved;
}

Freed release(MemoryResource &resource, void *block) {
    if (block == nullptr)
        return Freed::done;
    size_t *given = size_before(block);
    return resource.deallocate(given, *given + kAlignment, kAlignment);
}

} // namespace tightship::resource::sized
