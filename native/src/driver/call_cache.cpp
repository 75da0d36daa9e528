#include "tightship/driver/call_cache.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <system_error>
#include <utility>

namespace tightship::driver {

namespace {

using Clock = std::chrono::steady_clock;
using Buffer = std::array<char, kCallBytesMax>;

static_assert(kCalls == EPOLLIN);

/// Returns the next message of a socket without removing it; empty if none or one with files.
std::string_view peek(int file, Buffer &buffer) {
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t count = recvmsg(file, &message, MSG_PEEK | MSG_DONTWAIT);
    if (count <= 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
        return {};
    return {buffer.data(), static_cast<size_t>(count)};
}

bool is_same(std::string_view call, std::string_view known) {
    return call.size() == known.size() && call.size() >= kHeaderBytes &&
           call.substr(0, kNumberOffset) == known.substr(0, kNumberOffset) &&
           call.substr(kHeaderBytes) == known.substr(kHeaderBytes);
}

bool is_of(int64_t session, int64_t wanted) {
    return wanted == 0 || session == wanted;
}

} // namespace

std::string numbered(std::string answer, std::string_view call) {
    call.substr(kNumberOffset, kNumberBytes).copy(answer.data() + kNumberOffset, kNumberBytes);
    return answer;
}

std::string reply(int file, std::string answer) {
    if (send(file, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return answer;
    return {};
}

void CallCache::open(int file) {
    const std::lock_guard lock(entries_lock_);
    control(EPOLL_CTL_ADD, file, kCalls);
    lines_[file] = {};
}

Ready CallCache::next() {
    while (true) {
        epoll_event event{};
        const int count = epoll_wait(calls_, &event, 1, -1);
        if (count < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), "epoll_wait");
        const int file = event.data.fd;
        if (count <= 0 || !take_hold(file))
            continue;
        auto unsent = event.events == kCalls ? answer(file) : std::nullopt;
        if (!unsent)
            return {file, event.events, {}};
        if (!unsent->empty())
            return {file, 0, std::move(*unsent)};
        release(file);
    }
}

bool CallCache::take_hold(int file) {
    const std::lock_guard lock(entries_lock_);
    const auto found = lines_.find(file);
    if (found == lines_.end())
        return true;
    const bool was_taken = std::exchange(found->second.is_taken, true);
    return !was_taken;
}

void CallCache::release(int file) {
    const std::lock_guard lock(entries_lock_);
    const auto found = lines_.find(file);
    if (found == lines_.end())
        return;
    found->second.is_taken = false;
    control(EPOLL_CTL_MOD, file, std::exchange(found->second.wanted, kCalls));
}

void CallCache::watch(int file, uint32_t events) {
    const std::lock_guard lock(entries_lock_);
    lines_.at(file) = {};
    control(EPOLL_CTL_MOD, file, events);
}

void CallCache::watch_for(int file, uint32_t events) {
    const std::lock_guard lock(entries_lock_);
    Line &line = lines_.at(file);
    if (line.is_taken) // otherwise the same call would be answered twice
        line.wanted = events;
    else
        control(EPOLL_CTL_MOD, file, events);
}

void CallCache::close(int file) {
    close_ring(file);
    const std::lock_guard lock(entries_lock_);
    paused_.erase(file);
    lines_.erase(file);
    epoll_ctl(calls_, EPOLL_CTL_DEL, file, nullptr);
}

std::shared_ptr<CallCache::Entry> CallCache::find(int file, std::string_view call) {
    const std::lock_guard lock(entries_lock_);
    const auto found = entries_.find(file);
    if (found != entries_.end() && !paused_.contains(file))
        for (const auto &each : found->second)
            if (is_same(call, each->repeat.call))
                return each;
    return nullptr;
}

std::optional<std::string> CallCache::answer(int file) {
    {
        const std::lock_guard lock(entries_lock_);
        if (!entries_.contains(file) || paused_.contains(file))
            return {};
    }
    const auto came = Clock::now();
    Buffer buffer;
    const std::string_view call = peek(file, buffer);
    const auto entry = find(file, call);
    if (entry == nullptr || !run(*entry))
        return {};
    char rest = 0;
    recv(file, &rest, 1, MSG_DONTWAIT);
    const Polling next = offer(file, came);
    std::string unsent = reply(file, numbered(entry->repeat.answer, call));
    if (next.open != nullptr)
        attend(file, *next.open, unsent);
    return unsent;
}

bool CallCache::run(Entry &entry) {
    const std::lock_guard lock(entry.running);
    if (entry.is_gone || !permits_.take_free())
        return false;
    const bool is_done = run_counted(entry.repeat);
    permits_.give_back(entry.repeat.names);
    return is_done;
}

bool CallCache::run_counted(const CachedCall &repeat) {
    const auto start = Clock::now();
    if (!repeat.run())
        return false;
    const std::chrono::nanoseconds spent = Clock::now() - start;
    repeat.metrics->succeed({0, 0, spent.count(), 0});
    return true;
}

void CallCache::control(int operation, int file, uint32_t events) const {
    epoll_event event{};
    event.events = events | EPOLLONESHOT;
    event.data.fd = file;
    if (epoll_ctl(calls_, operation, file, &event) != 0)
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

void CallCache::remember(int file, CachedCall repeat) {
    auto entry = std::make_shared<Entry>();
    entry->repeat = std::move(repeat);
    const std::lock_guard lock(entries_lock_);
    entries_[file].push_back(std::move(entry));
}

void CallCache::pause(int file) {
    const std::lock_guard lock(entries_lock_);
    paused_.insert(file);
}

void CallCache::resume(int file) {
    const std::lock_guard lock(entries_lock_);
    paused_.erase(file);
}

void CallCache::forget(int file, int64_t session) {
    Entries gone;
    {
        const std::lock_guard lock(entries_lock_);
        const auto found = entries_.find(file);
        if (found == entries_.end())
            return;
        const auto goes = [session](const auto &entry) {
            return is_of(entry->repeat.session, session);
        };
        for (const auto &entry : found->second)
            if (goes(entry))
                gone.push_back(entry);
        std::erase_if(found->second, goes);
        if (found->second.empty())
            entries_.erase(found);
    }
    for (const auto &entry : gone) {
        const std::lock_guard lock(entry->running);
        entry->is_gone = true;
        entry->repeat.run = nullptr;
    }
}

} // namespace tightship::driver
