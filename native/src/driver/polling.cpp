#include "tightship/driver/call_cache.hpp"

#include <algorithm>
#include <utility>

namespace tightship::driver {

namespace {

using Clock = std::chrono::steady_clock;

/// Time to poll for a call. A client that slept takes tens of microseconds to wake up.
constexpr std::chrono::microseconds kSoon(100);

/// Most calls that are answered without polling, after polling in vain.
constexpr int kPassesMax = 64;

} // namespace

void CallCache::open_ring(int file, int memory) {
    auto open = std::make_shared<OpenRing>(memory);
    const std::lock_guard lock(entries_lock_);
    rings_[file] = std::move(open);
}

void CallCache::close_ring(int file) {
    std::shared_ptr<OpenRing> gone;
    {
        const std::lock_guard lock(entries_lock_);
        const auto found = rings_.find(file);
        if (found == rings_.end())
            return;
        gone = std::move(found->second);
        rings_.erase(found);
    }
    gone->is_gone = true;
    const std::lock_guard lock(gone->attended);
}

CallCache::Polling CallCache::offer(int file, Clock::time_point came) {
    Polling next;
    {
        const std::lock_guard lock(entries_lock_);
        const auto found = rings_.find(file);
        if (found == rings_.end())
            return {};
        next.open = found->second;
    }
    next.lock = std::unique_lock(next.open->attended);
    const auto before = std::exchange(next.open->answered, Clock::now());
    if (came - before > 2 * kSoon)
        return {};
    if (next.open->passes > 0) {
        next.open->passes -= 1;
        return {};
    }
    if (polling_.fetch_add(1) >= polling_max_) {
        polling_ -= 1;
        return {};
    }
    next.open->ring.set(RingState::kAttended);
    return next;
}

void CallCache::attend(int file, OpenRing &open, std::string &unsent) {
    const size_t before = open.position;
    if (unsent.empty())
        serve(file, open, unsent);
    else
        open.ring.pass(RingState::kAttended, RingState::kAway);
    const bool is_vain = open.position == before;
    open.passes_next = is_vain ? std::min(2 * open.passes_next, kPassesMax) : 1;
    open.passes = is_vain ? open.passes_next : 0;
    polling_ -= 1;
}

void CallCache::serve(int file, OpenRing &open, std::string &unsent) {
    Looking looking(kSoon);
    while (true) {
        switch (open.ring.state()) {
        case RingState::kCalled:
        case RingState::kAsleep:
            if (!take(file, open, unsent))
                return;
            looking = Looking(kSoon);
            break;
        case RingState::kAttended:
            if ((open.is_gone || !looking.goes_on()) &&
                open.ring.pass(RingState::kAttended, RingState::kAway))
                return;
            break;
        default: // the client uses its socket
            return;
        }
    }
}

bool CallCache::take(int file, OpenRing &open, std::string &unsent) {
    Ring::Copy copy;
    const std::string_view call = open.ring.read(Side::kCall, open.position, copy);
    const auto entry = open.is_gone ? nullptr : find(file, call);
    const bool is_done =
        entry != nullptr && entry->repeat.answer.size() <= kSlotTextMax && run(*entry);
    std::string answer(kElsewhere);
    if (is_done)
        answer = numbered(entry->repeat.answer, call);
    open.ring.write(Side::kAnswer, open.position++, answer);
    open.answered = Clock::now();
    const RingState before = open.ring.set(is_done ? RingState::kAttended : RingState::kAway);
    if (before == RingState::kAsleep)
        unsent = reply(file, std::move(answer));
    if (!unsent.empty())
        open.ring.pass(RingState::kAttended, RingState::kAway);
    return is_done && unsent.empty();
}

} // namespace tightship::driver
