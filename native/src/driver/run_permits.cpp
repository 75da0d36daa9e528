#include "tightship/driver/run_permits.hpp"

#include <algorithm>
#include <cassert>

namespace tightship::driver {

namespace {

/// Indices into `Names`.
constexpr size_t kModel = 0, kAccount = 1;

} // namespace

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
    move_back(names, names);
    // Other accounts that wait for this model come after this one's callers for another model, so
    // that a flood on one model delays another model by the run that has just ended only.
    if (const auto model = all_.parts.find(names[kModel]); model != all_.parts.end())
        model->second.order = ++order_;
    Place &place = next(names);
    move_back(place.names, names);
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
    for (size_t level = 0; level < place.names.size(); ++level) {
        const auto [found, is_new] = group->parts.try_emplace(place.names[level]);
        group = &found->second;
        if (is_new)
            group->order = group->served_at = ++order_;
        if (is_new && level == kAccount) {
            Account &account = accounts_[place.names[kAccount]];
            if (account.model_count++ == 0)
                account.order = order_;
        }
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
        if (path[level]->parts.empty() && path[level]->waiting.empty()) {
            path[level - 1]->parts.erase(place.names[level - 1]);
            if (level - 1 == kAccount && --accounts_.at(place.names[kAccount]).model_count == 0)
                accounts_.erase(place.names[kAccount]);
        }
    place.is_waiting = false;
    waiting_count_ -= 1;
    if (place.metrics != nullptr)
        place.metrics->dequeue();
}

bool RunPermits::has_several(const std::string &account, const Names &ended) const {
    const auto found = accounts_.find(account);
    if (account.empty() || found == accounts_.end())
        return false;
    size_t count = found->second.model_count;
    if (ended[kAccount] == account) {
        const auto model = all_.parts.find(ended[kModel]);
        if (model == all_.parts.end() || !model->second.parts.contains(account))
            count += 1;
    }
    return count > 1;
}

void RunPermits::move_back(const Names &names, const Names &ended) {
    if (const auto account = accounts_.find(names[kAccount]); account != accounts_.end())
        account->second.order = ++order_;
    Group *group = &all_;
    for (size_t level = 0; level < names.size(); ++level) {
        const auto found = group->parts.find(names[level]);
        if (found == group->parts.end())
            return;
        group = &found->second;
        group->served_at = ++order_;
        if (level != kModel || !has_several(names[kAccount], ended))
            group->order = order_;
    }
}

Place &RunPermits::next(const Names &ended) {
    using Orders = std::pair<uint64_t, uint64_t>;
    Group *group = nullptr;
    Orders least{};
    for (auto &[_, model] : all_.parts)
        for (auto &[name, part] : model.parts) {
            const Orders orders = has_several(name, ended)
                                      ? Orders{accounts_.at(name).order, model.served_at}
                                      : Orders{model.order, part.order};
            if (group == nullptr || orders < least) {
                group = &part;
                least = orders;
            }
        }
    const auto priority = [](const Group &each) {
        return each.waiting.empty() ? 0 : each.waiting.front()->priority;
    };
    const auto is_before = [&](const auto &one, const auto &other) {
        const Group &first = one.second, &second = other.second;
        if (priority(first) != priority(second))
            return priority(first) > priority(second);
        return first.order < second.order;
    };
    assert(group != nullptr); // callers know that a place waits
    while (!group->parts.empty())
        group = &std::ranges::min_element(group->parts, is_before)->second;
    return *group->waiting.front();
}

} // namespace tightship::driver
