#include "tightship/resource/host.hpp"

#include "tightship/os/os.hpp"

namespace tightship::resource {

HostResource::HostResource(Settings settings) : settings_(settings) {
    if (settings.node >= 0 && !os::has_node(settings.node))
        throw Misuse("`node` (= " + std::to_string(settings.node) +
                     ") is not a NUMA node of this machine.");
}

void *HostResource::map(size_t size_bytes, size_t alignment) {
    void *pointer = os::map(size_bytes, alignment);
    if (pointer == nullptr)
        return nullptr;
    if (settings_.node >= 0)
        os::prefer_node(pointer, size_bytes, settings_.node);
    if (settings_.is_filled)
        os::fill(pointer, size_bytes);
    if (settings_.is_locked && os::lock(pointer, size_bytes))
        locked_bytes_ += size_bytes;
    return pointer;
}

size_t HostResource::discard(void *start, size_t size_bytes) {
    return settings_.is_filled || settings_.is_locked ? 0 : os::discard(start, size_bytes);
}

void HostResource::unmap(void *pointer, size_t size_bytes) {
    os::unmap(pointer, size_bytes);
}

} // namespace tightship::resource
