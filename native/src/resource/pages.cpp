#include "tightship/resource/pages.hpp"

#include "tightship/os/limits.hpp"
#include "tightship/os/os.hpp"

#include <algorithm>

namespace tightship::resource {

namespace {

/// Rounds `size_bytes` up to whole pages; 0 if that exceeds the largest number.
size_t round_to_pages(size_t size_bytes) {
    return align_up(std::max<size_t>(size_bytes, 1), os::page_size());
}

} // namespace

std::string mapping_shortage() {
    const size_t limit = os::map_limit();
    if (os::maps_left() > limit / 16)
        return {};
    return "the process has " + std::to_string(os::map_count()) + " of the " +
           std::to_string(limit) +
           " mappings that the system admits, half of which are left to the rest of the process. "
           "Use fewer and larger blocks or pages, or raise vm.max_map_count.";
}

void *PageResource::allocate(size_t size_bytes, size_t alignment) {
    const size_t mapped_bytes = round_to_pages(size_bytes);
    if (mapped_bytes == 0)
        return nullptr;
    void *pointer = map(mapped_bytes, std::max(alignment, os::page_size()));
    if (pointer == nullptr)
        return nullptr;
    const std::lock_guard lock(mutex_);
    try {
        live_.emplace(reinterpret_cast<uintptr_t>(pointer), std::max<size_t>(size_bytes, 1));
    } catch (const std::bad_alloc &) {
        unmap(pointer, mapped_bytes);
        return nullptr;
    }
    ++allocation_count_;
    current_bytes_ += mapped_bytes;
    peak_bytes_ = std::max(peak_bytes_, current_bytes_);
    return pointer;
}

Freed PageResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    const size_t mapped_bytes = round_to_pages(size_bytes);
    {
        const std::lock_guard lock(mutex_);
        auto after = live_.upper_bound(reinterpret_cast<uintptr_t>(pointer));
        if (after == live_.begin())
            return Freed::foreign;
        const auto found = std::prev(after);
        const Range range{found->first, round_to_pages(found->second)};
        if (!range.contains(pointer))
            return Freed::foreign;
        if (found->first != reinterpret_cast<uintptr_t>(pointer))
            return Freed::not_a_block;
        if (found->second != std::max<size_t>(size_bytes, 1))
            return Freed::wrong_size;
        if (!is_aligned(pointer, alignment))
            return Freed::wrong_alignment;
        live_.erase(found);
        current_bytes_ -= mapped_bytes;
    }
    unmap(pointer, mapped_bytes);
    return Freed::done;
}

Range PageResource::range_of(const void *pointer) const {
    const std::lock_guard lock(mutex_);
    const auto after = live_.upper_bound(reinterpret_cast<uintptr_t>(pointer));
    if (after == live_.begin())
        return {};
    const auto found = std::prev(after);
    const Range range{found->first, round_to_pages(found->second)};
    return range.contains(pointer) ? range : Range{};
}

size_t PageResource::size_of(const void *pointer) const {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(reinterpret_cast<uintptr_t>(pointer));
    return found == live_.end() ? 0 : found->second;
}

Statistics PageResource::statistics() const {
    const std::lock_guard lock(mutex_);
    return {current_bytes_, live_.size(), current_bytes_, current_bytes_};
}

std::string PageResource::refusal(size_t, size_t) const {
    if (const std::string shortage = mapping_shortage(); !shortage.empty())
        return shortage;
    return "the system refuses, with " + std::to_string(statistics().current_bytes) +
           " bytes given. Ask for less, or raise the process's memory limit.";
}

size_t PageResource::peak_bytes() const {
    const std::lock_guard lock(mutex_);
    return peak_bytes_;
}

size_t PageResource::allocation_count() const {
    const std::lock_guard lock(mutex_);
    return allocation_count_;
}

} // namespace tightship::resource
