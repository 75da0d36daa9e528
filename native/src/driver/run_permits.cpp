#include "tightship/driver/run_permits.hpp"

#include <algorithm>

namespace tightship::driver {

bool RunPermits::is_free() const {
    const std::lock_guard lock(lock_);
    return free_ > 0;
}

int RunPermits::taken_count() const {
    const std::lock_guard lock(lock_);
    return count_ - free_;
}

size_t RunPermits::waiting_count() const {
    const std::lock_guard lock(lock_);
    return waiting_count_;
}

bool RunPermits::take_free() {
    static const Place unnamed;
    return take_free(unnamed);
}

bool RunPermits::take_free(const Place &place) {
    const std::lock_guard lock(lock_);
    return take_locked(place);
}

bool RunPermits::join(Place &place) {
    const std::lock_guard lock(lock_);
    return take_or_enter(place);
}

bool RunPermits::take(Place &place, std::optional<std::chrono::nanoseconds> patience) {
    std::unique_lock lock(lock_);
    if (take_or_enter(place))
        return true;
    const auto is_over = [&place] { return !place.is_waiting; };
    if (!patience)
        place.woken.wait(lock, is_over);
    else if (!place.woken.wait_for(lock, *patience, is_over))
        remove(place);
    return place.has_permit;
}

bool RunPermits::leave(Place &place) {
    const std::lock_guard lock(lock_);
    place.has_left = true;
    if (!place.is_waiting)
        return false;
    remove(place);
    place.woken.notify_one();
    return true;
}

void RunPermits::give_back(const Names &names) {
    const std::lock_guard lock(lock_);
    if (waiting_count_ == 0) {
        free_ += 1;
        return;
    }
    move_back(names);
    Place &place = next();
    move_back(place.names);
    remove(place);
    place.has_permit = true;
    if (place.told)
        place.told();
    else
        place.woken.notify_one();
}

bool RunPermits::take_locked(const Place &place) {
    if (place.has_left || free_ == 0)
        return false;
    free_ -= 1;
    return true;
}

bool RunPermits::take_or_enter(Place &place) {
    if (take_locked(place))
        return true;
    place.has_permit = false;
    if (!place.has_left)
        enter(place);
    return false;
}

void RunPermits::enter(Place &place) {
    Group *group = &all_;
    for (const auto &name : place.names) {
        const auto [found, is_new] = group->parts.try_emplace(name);
        group = &found->second;
        if (is_new)
            group->order = ++order_;
    }
    group->waiting.push_back(&place);
    place.is_waiting = true;
    waiting_count_ += 1;
    if (place.metrics != nullptr)
        place.metrics->enqueue();
}

void RunPermits::remove(Place &place) {
    std::array<Group *, std::tuple_size_v<Names> + 1> path{&all_};
    for (size_t level = 0; level < place.names.size(); ++level)
        path[level + 1] = &path[level]->parts.at(place.names[level]);
    path.back()->waiting.remove(&place);
    for (size_t level = place.names.size(); level > 0; --level)
        if (path[level]->parts.empty() && path[level]->waiting.empty())
            path[level - 1]->parts.erase(place.names[level - 1]);
    place.is_waiting = false;
    waiting_count_ -= 1;
    if (place.metrics != nullptr)
        place.metrics->dequeue();
}

void RunPermits::move_back(const Names &names) {
    Group *group = &all_;
    for (const auto &name : names) {
        const auto found = group->parts.find(name);
        if (found == group->parts.end())
            return;
        group = &found->second;
        group->order = ++order_;
    }
}

Place &RunPermits::next() {
    const auto priority = [](const Group &group) {
        return group.waiting.empty() ? 0 : group.waiting.front()->priority;
    };
    const auto is_before = [&](const auto &one, const auto &other) {
        const Group &first = one.second, &second = other.second;
        if (priority(first) != priority(second))
            return priority(first) > priority(second);
        return first.order < second.order;
    };
    Group *group = &all_;
    while (!group->parts.empty())
        group = &std::ranges::min_element(group->parts, is_before)->second;
    return *group->waiting.front();
}

} // namespace tightship::driver
