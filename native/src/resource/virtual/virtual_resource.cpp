#include "tightship/resource/virtual/virtual_resource.hpp"

#include "tightship/os_limits.hpp"

namespace tightship::resource {

void VirtualResource::check_stream(const PagedDevice &device, const StreamPointer &stream) {
    if (stream != nullptr && !device.heeds(*stream))
        throw Misuse("The device's memory is used in streams of its own, and this is another "
                     "kind of stream or another device's. Give a `CudaStream` of the device.");
}

std::string VirtualResource::what_is_short(const PagedDevice &device, size_t size_bytes) {
    if (!device.can_back(size_bytes))
        return "the device never has memory for so large a block. Ask for less.";
    const size_t limit = os::map_limit(), count = os::map_count();
    if (device.is_host() && limit > 0 && count + count / 16 >= limit)
        return "the process has " + std::to_string(count) + " of at most " + std::to_string(limit) +
               " mappings. Make pages larger, or raise vm.max_map_count.";
    return "the device has no more. Give blocks back, or ask for less.";
}

} // namespace tightship::resource
