#include "tightship/resource/virtual/virtual_resource.hpp"

#include "tightship/resource/pages.hpp"

namespace tightship::resource {

void VirtualResource::check_stream(const PagedDevice &device, const StreamPointer &stream) {
    if (stream != nullptr && !device.heeds(*stream))
        throw Misuse("The device's memory is used in streams of its own, and this is another "
                     "kind of stream or another device's. Give a `CudaStream` of the device.");
}

std::string VirtualResource::what_is_short(const PagedDevice &device, size_t size_bytes) {
    if (!device.can_back(size_bytes))
        return "the device never has memory for so large a block. Ask for less.";
    if (const std::string shortage = mapping_shortage(); device.is_host() && !shortage.empty())
        return shortage;
    return "the device has no more. Give blocks back, or ask for less.";
}

} // namespace tightship::resource
