#include "tightship/resource/replay.hpp"

#include <algorithm>
#include <ctime>
#include <vector>

namespace tightship::resource {

namespace {

struct Slot {
    void *pointer = nullptr; // null if it was refused
    size_t size_bytes = 0;
};

int64_t thread_time_ns() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

/// Records live and held bytes: after each allocation, and after frees at the end of each part.
class Curves {
  public:
    Curves(Replayed &result, size_t event_count, size_t part_count)
        : result_(result), event_count_(event_count) {
        result.live_bytes.resize(part_count);
        result.held_bytes.resize(part_count);
    }

    void note(const MemoryResource &resource, size_t index, size_t live_bytes, bool is_allocation) {
        const size_t part = part_of(index);
        const bool is_last = index + 1 == event_count_ || part_of(index + 1) != part;
        size_t &live = result_.live_bytes[part];
        live = std::max(live, live_bytes);
        if (!is_allocation && !is_last)
            return;
        const size_t now = resource.statistics().touched_bytes;
        result_.held_bytes[part] = std::max(result_.held_bytes[part], now);
        result_.peak_held_bytes = std::max(result_.peak_held_bytes, now);
    }

  private:
    size_t part_of(size_t index) const { return index * result_.live_bytes.size() / event_count_; }

    Replayed &result_;
    size_t event_count_;
};

} // namespace

Replayed replay(MemoryResource &resource, std::span<const int64_t> slots,
                std::span<const int64_t> sizes, size_t slot_count, size_t part_count) {
    Replayed result;
    std::vector<Slot> held(slot_count);
    Curves curves(result, slots.size(), part_count);
    size_t live_bytes = 0;
    const int64_t start_ns = thread_time_ns();
    for (size_t index = 0; index < slots.size(); ++index) {
        const bool is_allocation = slots[index] >= 0;
        Slot &slot = held[static_cast<size_t>(is_allocation ? slots[index] : ~slots[index])];
        if (is_allocation) {
            slot.size_bytes = static_cast<size_t>(sizes[index]);
            slot.pointer = resource.allocate(slot.size_bytes);
            result.refused_count += slot.pointer == nullptr;
            live_bytes += slot.pointer != nullptr ? slot.size_bytes : 0;
            result.peak_live_bytes = std::max(result.peak_live_bytes, live_bytes);
        } else if (slot.pointer != nullptr) {
            resource.deallocate(slot.pointer, slot.size_bytes);
            live_bytes -= slot.size_bytes;
            slot.pointer = nullptr;
        }
        if (part_count > 0)
            curves.note(resource, index, live_bytes, is_allocation);
    }
    result.duration_ns = thread_time_ns() - start_ns;
    for (const Slot &slot : held)
        if (slot.pointer != nullptr)
            resource.deallocate(slot.pointer, slot.size_bytes);
    return result;
}

} // namespace tightship::resource
