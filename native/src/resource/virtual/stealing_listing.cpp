#include "tightship/resource/virtual/stealing_resource.hpp"

#include <algorithm>

namespace tightship::resource {

namespace {

Occupancy occupancy(const Block &block) {
    if (block.state == BlockState::live)
        return Occupancy::live;
    if (block.user != nullptr && !block.user->is_done(block.epoch))
        return Occupancy::awaiting;
    return block.state == BlockState::kept ? Occupancy::kept : Occupancy::free;
}

} // namespace

Range StealingVirtualResource::range_of(const void *pointer) const {
    const auto lock = device_->enter(mutex_);
    const Block *const block = blocks_.holding(reinterpret_cast<uintptr_t>(pointer));
    if (block == nullptr || block->state != BlockState::live)
        return {};
    return {block->start, block->size_bytes};
}

Statistics StealingVirtualResource::statistics() const {
    const auto lock = device_->enter(mutex_);
    return {statistics_.allocated_bytes, live_count_, statistics_.physical_bytes,
            statistics_.physical_bytes};
}

VirtualStatistics StealingVirtualResource::virtual_statistics() const {
    const auto lock = device_->enter(mutex_);
    VirtualStatistics now = statistics_;
    now.cached_bytes = now.physical_bytes - now.allocated_bytes;
    for (const auto &range : blocks_.ranges())
        now.address_bytes += range->addresses->size_bytes();
    return now;
}

size_t StealingVirtualResource::available_bytes() const {
    if (settings_.max_bytes == SIZE_MAX)
        return SIZE_MAX;
    const auto lock = device_->enter(mutex_);
    return settings_.max_bytes - std::min(settings_.max_bytes, statistics_.allocated_bytes);
}

std::string StealingVirtualResource::refusal(size_t size_bytes, size_t) const {
    const VirtualStatistics now = virtual_statistics();
    const std::string held = std::to_string(now.allocated_bytes) + " bytes are in blocks and " +
                             std::to_string(now.physical_bytes) + " in pages of " +
                             std::to_string(settings_.page_bytes);
    if (settings_.max_bytes != SIZE_MAX && device_->can_back(size_bytes))
        return held + ", of at most " + std::to_string(settings_.max_bytes) +
               ". Give blocks back, or raise `max_bytes`.";
    return held + ", and " + what_is_short(*device_, size_bytes);
}

std::vector<ListedBlock> StealingVirtualResource::blocks() const {
    const auto lock = device_->enter(mutex_);
    std::vector<ListedBlock> rows;
    for (const auto &range : blocks_.ranges()) {
        uintptr_t segment = 0;
        for (const Block *block = range->first; block != nullptr; block = block->after) {
            if (block->state == BlockState::hole)
                continue;
            if (block->before == nullptr || block->before->state == BlockState::hole)
                segment = block->start;
            const bool is_live = block->state == BlockState::live;
            rows.push_back({segment, block->start, block->size_bytes,
                            is_live ? block->requested_bytes : 0, occupancy(*block)});
        }
    }
    return rows;
}

void StealingVirtualResource::record_events(size_t count) {
    const auto lock = device_->enter(mutex_);
    events_.set_capacity(count);
}

std::vector<Event> StealingVirtualResource::events() const {
    const auto lock = device_->enter(mutex_);
    return events_.events();
}

} // namespace tightship::resource
