/// Layout of a virtual resource, and its last events.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace tightship::resource {

/// State of a listed block. `awaiting`: freed, while work may still use it; `kept`: free, for a
/// request of its size.
enum class Occupancy : uint8_t { live, awaiting, kept, free };

/// Part of a segment, which is a run of consecutive addresses that have memory.
struct ListedBlock {
    uintptr_t segment = 0; // first address of the segment
    uintptr_t start = 0;
    size_t size_bytes = 0;
    size_t requested_bytes = 0; // 0 unless it is live
    Occupancy occupancy = Occupancy::free;
};

enum class Action : uint8_t { allocated, freed, mapped, unmapped };

struct Event {
    Action action;
    uintptr_t start;
    size_t size_bytes; // of a block, by its request
    int64_t time_ns;   // since 1970
};

/// Ring of the last events, at most `capacity`; 0 at first. Not thread-safe.
class EventRing {
  public:
    /// Forgets all events and sets the capacity.
    void set_capacity(size_t count) {
        events_.clear();
        next_ = 0;
        capacity_ = count;
    }
    void note(Action action, uintptr_t start, size_t size_bytes) {
        if (capacity_ != 0) [[unlikely]]
            add(action, start, size_bytes);
    }
    /// Returns the events, the oldest first.
    std::vector<Event> events() const {
        std::vector<Event> result(events_.begin() + static_cast<ptrdiff_t>(next_), events_.end());
        result.insert(result.end(), events_.begin(),
                      events_.begin() + static_cast<ptrdiff_t>(next_));
        return result;
    }

  private:
    void add(Action action, uintptr_t start, size_t size_bytes) {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        const Event event{action, start, size_bytes,
                          std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
        if (events_.size() < capacity_) {
            try {
                events_.push_back(event);
            } catch (const std::bad_alloc &) { // the call succeeds without the record
            }
            return;
        }
        events_[next_] = event;
        next_ = (next_ + 1) % capacity_;
    }

    std::vector<Event> events_;
    size_t next_ = 0; // index of the oldest event, once the ring is full
    size_t capacity_ = 0;
};

} // namespace tightship::resource
