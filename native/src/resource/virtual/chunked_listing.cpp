#include "tightship/resource/virtual/chunked_resource.hpp"

#include <algorithm>

namespace tightship::resource {

Range ChunkedVirtualResource::range_of(const void *pointer) const {
    const auto lock = device_->enter(mutex_);
    const auto after = live_.upper_bound(reinterpret_cast<uintptr_t>(pointer));
    if (after == live_.begin())
        return {};
    const Range range{std::prev(after)->first, std::prev(after)->second.size_bytes};
    return range.contains(pointer) ? range : Range{};
}

Statistics ChunkedVirtualResource::statistics() const {
    const auto lock = device_->enter(mutex_);
    return {statistics_.allocated_bytes, live_.size(), statistics_.physical_bytes,
            statistics_.physical_bytes};
}

VirtualStatistics ChunkedVirtualResource::virtual_statistics() const {
    const auto lock = device_->enter(mutex_);
    VirtualStatistics now = statistics_;
    now.cached_bytes = now.physical_bytes - now.allocated_bytes;
    for (const auto &[size, mapping] : cache_)
        now.address_bytes += mapping.addresses->size_bytes();
    for (const auto &[start, mapping] : live_)
        now.address_bytes += mapping.addresses->size_bytes();
    for (const Mapping &mapping : waiting_)
        now.address_bytes += mapping.addresses->size_bytes();
    now.waiting_count = waiting_.size();
    return now;
}

std::string ChunkedVirtualResource::refusal(size_t size_bytes, size_t) const {
    const VirtualStatistics now = virtual_statistics();
    return std::to_string(now.allocated_bytes) + " bytes are in blocks and " +
           std::to_string(now.physical_bytes) + " bytes in chunks of " +
           std::to_string(chunk_bytes()) + ", and " + what_is_short(*device_, size_bytes);
}

std::vector<ListedBlock> ChunkedVirtualResource::blocks() const {
    const auto lock = device_->enter(mutex_);
    std::vector<ListedBlock> rows;
    const auto list = [&rows](const Mapping &mapping, Occupancy occupancy) {
        const uintptr_t start = mapping.addresses->start();
        const size_t requested = occupancy == Occupancy::live ? mapping.requested_bytes : 0;
        rows.push_back({start, start, mapping.size_bytes, requested, occupancy});
    };
    for (const auto &[start, mapping] : live_)
        list(mapping, Occupancy::live);
    for (const auto &[size, mapping] : cache_)
        list(mapping, mapping.use.is_done() ? Occupancy::kept : Occupancy::awaiting);
    for (const Mapping &mapping : waiting_)
        if (!mapping.chunks.empty())
            list(mapping, Occupancy::awaiting);
    std::ranges::sort(rows, {}, &ListedBlock::start);
    return rows;
}

void ChunkedVirtualResource::record_events(size_t count) {
    const auto lock = device_->enter(mutex_);
    events_.set_capacity(count);
}

std::vector<Event> ChunkedVirtualResource::events() const {
    const auto lock = device_->enter(mutex_);
    return events_.events();
}

} // namespace tightship::resource
