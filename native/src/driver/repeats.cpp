#include "tightship/driver/repeats.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <system_error>

namespace tightship::driver {

namespace {

using Buffer = std::array<char, kCallBytesMax>;

/// The message that is next on a socket, left there; empty if none is, or one with files.
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

} // namespace

Ready Repeats::next() {
    while (true) {
        epoll_event event{};
        const int count = epoll_wait(calls_, &event, 1, -1);
        if (count < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), "epoll_wait");
        if (count <= 0)
            continue;
        std::string unsent;
        if (event.events != EPOLLIN || !answer(event.data.fd, unsent))
            return {event.data.fd, event.events, {}};
        if (!unsent.empty())
            return {event.data.fd, 0, std::move(unsent)};
        watch(event.data.fd);
    }
}

bool Repeats::answer(int file, std::string &unsent) {
    Buffer buffer;
    std::shared_ptr<Entry> entry;
    std::string_view call;
    {
        const std::lock_guard lock(entries_lock_);
        const auto found = entries_.find(file);
        if (found == entries_.end())
            return false;
        call = peek(file, buffer);
        for (const auto &each : found->second)
            if (is_same(call, each->repeat.call))
                entry = each;
    }
    if (entry == nullptr || !run(*entry))
        return false;
    char rest = 0;
    recv(file, &rest, 1, MSG_DONTWAIT);
    std::string answer = entry->repeat.answer;
    call.substr(kNumberOffset, kNumberBytes).copy(answer.data() + kNumberOffset, kNumberBytes);
    if (send(file, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        unsent = std::move(answer);
    return true;
}

bool Repeats::run(Entry &entry) {
    const std::lock_guard lock(entry.running);
    bool is_done = false;
    if (running_.fetch_add(1) < room_ && !entry.is_gone)
        is_done = entry.repeat.run();
    running_ -= 1;
    return is_done;
}

void Repeats::watch(int file) const {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLONESHOT;
    event.data.fd = file;
    epoll_ctl(calls_, EPOLL_CTL_MOD, file, &event);
}

void Repeats::remember(int file, Repeat repeat) {
    auto entry = std::make_shared<Entry>();
    entry->repeat = std::move(repeat);
    const std::lock_guard lock(entries_lock_);
    entries_[file].push_back(std::move(entry));
}

void Repeats::forget(int file, int64_t session) {
    Entries gone;
    {
        const std::lock_guard lock(entries_lock_);
        const auto found = entries_.find(file);
        if (found == entries_.end())
            return;
        const auto goes = [session](const auto &entry) {
            return session == 0 || entry->repeat.session == session;
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
