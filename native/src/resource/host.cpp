#include "tightship/resource/host.hpp"

#include "tightship/os.hpp"

namespace tightship::resource {

void *HostResource::map(size_t size_bytes, size_t alignment) {
    return os::map(size_bytes, alignment);
}

void HostResource::unmap(void *pointer, size_t size_bytes) {
    os::unmap(pointer, size_bytes);
}

} // namespace tightship::resource
