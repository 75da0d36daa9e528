#include "tightship/host_resource.hpp"

#include "tightship/os.hpp"

namespace tightship {

namespace {

size_t round_to_pages(size_t size_bytes) {
    const size_t page = os::page_size();
    return (size_bytes + page - 1) / page * page;
}

} // namespace

void *HostResource::allocate(size_t size_bytes, size_t alignment) {
    const size_t mapped_bytes = round_to_pages(size_bytes == 0 ? 1 : size_bytes);
    if (mapped_bytes < size_bytes || alignment > os::page_size())
        return nullptr;
    void *pointer = os::map(mapped_bytes);
    if (pointer == nullptr)
        return nullptr;
    ++allocation_count_;
    const int64_t current = current_bytes_ += static_cast<int64_t>(mapped_bytes);
    int64_t peak = peak_bytes_;
    while (current > peak && !peak_bytes_.compare_exchange_weak(peak, current)) {
    }
    return pointer;
}

void HostResource::deallocate(void *pointer, size_t size_bytes) {
    const size_t mapped_bytes = round_to_pages(size_bytes == 0 ? 1 : size_bytes);
    os::unmap(pointer, mapped_bytes);
    current_bytes_ -= static_cast<int64_t>(mapped_bytes);
}

} // namespace tightship
