#include "tightship/resource/malloc.hpp"

#include "tightship/os/os.hpp"

#include <algorithm>
#include <cstdlib>

namespace tightship::resource {

MallocResource::MallocResource() {
    os::release_heap();
    heap_bytes_ = os::heap_bytes();
}

void *MallocResource::allocate(size_t size_bytes, size_t alignment) {
    const size_t asked = std::max<size_t>(size_bytes, 1);
    void *pointer = nullptr;
    if (alignment <= kDefaultAlignment)
        pointer = std::malloc(asked);
    else if (posix_memalign(&pointer, alignment, asked) != 0)
        return nullptr;
    if (pointer == nullptr)
        return nullptr;
    current_bytes_.fetch_add(asked, std::memory_order_relaxed);
    current_count_.fetch_add(1, std::memory_order_relaxed);
    return pointer;
}

Freed MallocResource::deallocate(void *pointer, size_t size_bytes, size_t) {
    current_bytes_.fetch_sub(std::max<size_t>(size_bytes, 1), std::memory_order_relaxed);
    current_count_.fetch_sub(1, std::memory_order_relaxed);
    std::free(pointer);
    return Freed::done;
}

Statistics MallocResource::statistics() const {
    const size_t live = current_bytes_, heap = os::heap_bytes();
    const size_t held = std::max(live, heap - std::min(heap, heap_bytes_));
    return {live, current_count_, held, held};
}

std::string MallocResource::refusal(size_t, size_t) const {
    return "the C library has no more.";
}

} // namespace tightship::resource
