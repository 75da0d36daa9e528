#include "tightship/driver/turns.hpp"

#include <algorithm>

namespace tightship::driver {

bool Turns::is_free() const {
    const std::lock_guard lock(lock_);
    return free_ > 0;
}

size_t Turns::waiting_count() const {
    const std::lock_guard lock(lock_);
    return waiters_.size();
}

bool Turns::take_free() {
    const std::lock_guard lock(lock_);
    if (free_ == 0)
        return false;
    free_ -= 1;
    return true;
}

bool Turns::take(std::optional<std::chrono::nanoseconds> patience) {
    std::unique_lock lock(lock_);
    if (free_ > 0) {
        free_ -= 1;
        return true;
    }
    Waiter mine;
    waiters_.push_back(&mine);
    const auto has_turn = [&mine] { return mine.has_turn; };
    if (!patience)
        mine.told.wait(lock, has_turn);
    else if (!mine.told.wait_for(lock, *patience, has_turn))
        waiters_.erase(std::ranges::find(waiters_, &mine));
    return mine.has_turn;
}

void Turns::give_back() {
    const std::lock_guard lock(lock_);
    if (waiters_.empty()) {
        free_ += 1;
        return;
    }
    waiters_.front()->has_turn = true;
    waiters_.front()->told.notify_one();
    waiters_.pop_front();
}

} // namespace tightship::driver
