#include "tightship/resource/virtual/virtual_resource.hpp"

#include "tightship/resource/pages.hpp"

namespace tightship::resource {

VirtualResource::StreamPointer VirtualResource::known(const StreamPointer &stream) {
    if (stream == nullptr)
        return nullptr;
    const std::lock_guard lock(known_mutex_);
    std::erase_if(known_, [](const auto &entry) { return entry.second.expired(); });
    std::weak_ptr<Stream> &entry = known_[stream.get()];
    if (StreamPointer owner = entry.lock())
        return owner;
    entry = stream;
    return stream;
}

void VirtualResource::each_stream(const VisitStream &visit) const {
    const std::lock_guard lock(known_mutex_);
    for (const auto &[stream, owner] : known_)
        if (!owner.expired())
            visit(stream);
}

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
