#include "tightship/resource/virtual/growing_resource.hpp"

#include "tightship/resource/pages.hpp"

#include <algorithm>

namespace tightship::resource {

namespace {

/// Share of all memory that an outgrown stage may have free before it is given back.
constexpr size_t kFreeShare = 256;

size_t bytes_taken(size_t size_bytes) {
    constexpr size_t granule = StealingVirtualResource::kGranule;
    return size_bytes > SIZE_MAX - granule ? size_bytes
                                           : align_up(std::max<size_t>(size_bytes, 1), granule);
}

void add_statistics(VirtualStatistics &sum, const VirtualStatistics &each) {
    sum.requested_bytes += each.requested_bytes;
    sum.allocated_bytes += each.allocated_bytes;
    sum.cached_bytes += each.cached_bytes;
    sum.address_bytes += each.address_bytes;
    sum.waiting_count += each.waiting_count;
    sum.allocation_count += each.allocation_count;
    sum.exact_count += each.exact_count;
    sum.remap_count += each.remap_count;
    sum.created_count += each.created_count;
    sum.moved_count += each.moved_count;
    sum.released_count += each.released_count;
    sum.retry_count += each.retry_count;
    sum.wait_count += each.wait_count;
    sum.physical_bytes += each.physical_bytes;
}

} // namespace

GrowingVirtualResource::GrowingVirtualResource(std::shared_ptr<PagedDevice> device,
                                               StealingVirtualResource::Settings settings)
    : total_(std::make_shared<PhysicalTotal>()) {
    settings.total = total_;
    for (const Stage &stage : kStages) {
        settings.page_bytes = stage.page_bytes;
        stages_.push_back(std::make_unique<StealingVirtualResource>(device, settings));
    }
}

/// Returns the stage for a request, after giving back what those before it have free.
size_t GrowingVirtualResource::stage_for(size_t size_bytes) {
    const size_t before = stage_.load(std::memory_order_relaxed);
    if (before + 1 == kStages.size())
        return before;
    const size_t live = live_bytes();
    size_t stage = before;
    while (stage + 1 < kStages.size() &&
           (live > kStages[stage].live_bytes || size_bytes > kStages[stage].live_bytes - live))
        ++stage;
    if (stage == before) [[likely]]
        return stage;
    size_t found = before; // another thread may have grown further
    while (found < stage && !stage_.compare_exchange_weak(found, stage)) {
    }
    stage = std::max(found, stage);
    trim_before(stage);
    return stage;
}

size_t GrowingVirtualResource::live_bytes() const {
    size_t sum = 0;
    for (const auto &stage : stages_)
        sum += stage->live_bytes();
    return sum;
}

size_t GrowingVirtualResource::trim_before(size_t stage) {
    size_t given_back = 0;
    for (size_t index = 0; index < stage; ++index)
        given_back += stages_[index]->trim();
    return given_back;
}

void GrowingVirtualResource::trim_outgrown(size_t stage) {
    const Statistics now = stages_[stage]->statistics();
    const size_t all_bytes = total_->now_bytes.load(std::memory_order_relaxed);
    if (now.touched_bytes - now.current_bytes > all_bytes / kFreeShare)
        stages_[stage]->trim();
}

void *GrowingVirtualResource::allocate_on(size_t size_bytes, size_t alignment,
                                          const StreamPointer &stream) {
    const size_t bytes = bytes_taken(size_bytes);
    const size_t stage = stage_for(bytes);
    void *pointer = stages_[stage]->allocate_on(size_bytes, alignment, stream);
    if (pointer == nullptr && trim_before(stage) > 0)
        pointer = stages_[stage]->allocate_on(size_bytes, alignment, stream);
    if (pointer == nullptr)
        return nullptr;
    const size_t live = live_bytes();
    size_t peak = peak_live_bytes_.load(std::memory_order_relaxed);
    while (peak < live && !peak_live_bytes_.compare_exchange_weak(peak, live)) {
    }
    return pointer;
}

Freed GrowingVirtualResource::deallocate_on(void *pointer, size_t size_bytes, size_t alignment,
                                            const StreamPointer &stream) {
    const size_t current = stage_.load(std::memory_order_relaxed);
    for (size_t index = current + 1; index-- > 0;) {
        if (!stages_[index]->may_hold(pointer))
            continue;
        const Freed freed = stages_[index]->deallocate_on(pointer, size_bytes, alignment, stream);
        if (freed == Freed::foreign)
            continue;
        if (freed == Freed::done && index < current)
            trim_outgrown(index);
        return freed;
    }
    return Freed::foreign;
}

Range GrowingVirtualResource::range_of(const void *pointer) const {
    for (const auto &stage : stages_)
        if (const Range range = stage->range_of(pointer); range.contains(pointer))
            return range;
    return {};
}

size_t GrowingVirtualResource::size_of(const void *pointer) const {
    for (const auto &stage : stages_)
        if (stage->may_hold(pointer))
            if (const size_t size_bytes = stage->size_of(pointer); size_bytes > 0)
                return size_bytes;
    return 0;
}

Statistics GrowingVirtualResource::statistics() const {
    Statistics sum;
    for (const auto &stage : stages_) {
        const Statistics each = stage->statistics();
        sum.current_bytes += each.current_bytes;
        sum.current_count += each.current_count;
        sum.reserved_bytes += each.reserved_bytes;
        sum.touched_bytes += each.touched_bytes;
    }
    return sum;
}

VirtualStatistics GrowingVirtualResource::virtual_statistics() const {
    VirtualStatistics sum;
    for (const auto &stage : stages_)
        add_statistics(sum, stage->virtual_statistics());
    sum.peak_allocated_bytes = peak_live_bytes_;
    sum.peak_physical_bytes = total_->peak_bytes;
    return sum;
}

std::vector<ListedBlock> GrowingVirtualResource::blocks() const {
    std::vector<ListedBlock> found;
    for (const auto &stage : stages_)
        for (const ListedBlock &block : stage->blocks())
            found.push_back(block);
    std::sort(found.begin(), found.end(),
              [](const ListedBlock &a, const ListedBlock &b) { return a.start < b.start; });
    return found;
}

void GrowingVirtualResource::record_events(size_t count) {
    event_count_ = count;
    for (const auto &stage : stages_)
        stage->record_events(count);
}

std::vector<Event> GrowingVirtualResource::events() const {
    std::vector<Event> found;
    for (const auto &stage : stages_)
        for (const Event &event : stage->events())
            found.push_back(event);
    std::stable_sort(found.begin(), found.end(),
                     [](const Event &a, const Event &b) { return a.time_ns < b.time_ns; });
    const size_t kept = std::min<size_t>(found.size(), event_count_);
    found.erase(found.begin(), found.end() - static_cast<ptrdiff_t>(kept));
    return found;
}

size_t GrowingVirtualResource::available_bytes() const {
    const size_t most = stages_[0]->available_bytes();
    if (most == SIZE_MAX)
        return SIZE_MAX;
    size_t others = 0;
    for (size_t index = 1; index < stages_.size(); ++index)
        others += stages_[index]->statistics().current_bytes;
    return most - std::min(most, others);
}

std::string GrowingVirtualResource::refusal(size_t size_bytes, size_t alignment) const {
    return stages_[stage_]->refusal(size_bytes, alignment);
}

size_t GrowingVirtualResource::trim() {
    return trim_before(stages_.size());
}

} // namespace tightship::resource
