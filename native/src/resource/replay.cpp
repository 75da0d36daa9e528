#include "tightship/resource/replay.hpp"

#include <algorithm>
#include <ctime>
#include <vector>

namespace tightship::resource {

namespace {

struct Slot {
    void *pointer = nullptr; // null where it was refused
    size_t size_bytes = 0;
};

int64_t thread_time_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

} // namespace

Replayed replay(MemoryResource &resource, std::span<const int64_t> slots,
                std::span<const int64_t> sizes, size_t slot_count, bool looks) {
    Replayed result;
    std::vector<Slot> held(slot_count);
    size_t live_bytes = 0;
    const int64_t start_ns = thread_time_ns();
    for (size_t index = 0; index < slots.size(); ++index) {
        if (slots[index] < 0) {
            Slot &slot = held[static_cast<size_t>(~slots[index])];
            if (slot.pointer != nullptr)
                resource.deallocate(slot.pointer, slot.size_bytes);
            live_bytes -= slot.pointer != nullptr ? slot.size_bytes : 0;
            slot = {};
            continue;
        }
        const auto size_bytes = static_cast<size_t>(sizes[index]);
        void *pointer = resource.allocate(size_bytes);
        held[static_cast<size_t>(slots[index])] = {pointer, size_bytes};
        result.refused_count += pointer == nullptr;
        live_bytes += pointer != nullptr ? size_bytes : 0;
        result.peak_live_bytes = std::max(result.peak_live_bytes, live_bytes);
        if (looks)
            result.peak_held_bytes =
                std::max(result.peak_held_bytes, resource.statistics().touched_bytes);
    }
    result.duration_ns = thread_time_ns() - start_ns;
    for (const Slot &slot : held)
        if (slot.pointer != nullptr)
            resource.deallocate(slot.pointer, slot.size_bytes);
    return result;
}

} // namespace tightship::resource
