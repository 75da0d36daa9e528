#include "tightship/driver/lent_connections.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace tightship::driver {

namespace {

constexpr uint64_t kBell = 0;

/// Time to wait for a run permit: most of these runs are short, and this thread reads no other
/// request meanwhile.
constexpr std::chrono::milliseconds kPermitPatience(1);

constexpr uint32_t kOnce = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;

int opened(int file, const char *what) {
    if (file < 0)
        throw std::system_error(errno, std::generic_category(), what);
    return file;
}

int control(int calls, int operation, int file, uint32_t events, uint64_t number) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = number;
    return epoll_ctl(calls, operation, file, &event);
}

} // namespace

LentConnections::LentConnections(RunPermits &permits)
    : permits_(permits), calls_(opened(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      bell_(eventfd(0, EFD_CLOEXEC)) {
    control(calls_, EPOLL_CTL_ADD, bell_, EPOLLIN, kBell);
}

LentConnections::~LentConnections() {
    for (const auto &[number, connection] : connections_)
        ::close(connection.file);
    ::close(bell_);
    ::close(calls_);
}

void LentConnections::remember(int64_t number, KnownRequest known) {
    std::string request = known.request;
    const auto entry = std::make_shared<Entry>(std::move(known));
    const std::lock_guard lock(lock_);
    if (known_.try_emplace(request, entry).second)
        requests_[number] = std::move(request);
}

void LentConnections::forget(int64_t number) {
    std::shared_ptr<Entry> gone; // destroyed after the lock, because `released` may take others
    const std::lock_guard lock(lock_);
    const auto request = requests_.extract(number);
    if (request.empty())
        return;
    const auto found = known_.find(request.mapped());
    gone = std::move(found->second);
    known_.erase(found);
}

void LentConnections::lend(int64_t number, int file, std::string account, std::string client) {
    const int own = opened(fcntl(file, F_DUPFD_CLOEXEC, 0), "fcntl");
    const std::lock_guard lock(lock_);
    connections_.emplace(number, Connection{own, {"", std::move(account), std::move(client), ""}});
    if (control(calls_, EPOLL_CTL_ADD, own, kOnce, static_cast<uint64_t>(number)) != 0) {
        const int error = errno;
        drop(number);
        throw std::system_error(error, std::generic_category(), "epoll_ctl");
    }
}

bool LentConnections::recall(int64_t number) {
    const std::lock_guard lock(lock_);
    const auto found = connections_.find(number);
    if (found == connections_.end())
        return false;
    found->second.is_recalled = true;
    if (found->second.is_busy)
        return false;
    drop(number);
    return true;
}

std::optional<int64_t> LentConnections::idle_since(int64_t number) const {
    const std::lock_guard lock(lock_);
    const auto found = connections_.find(number);
    if (found == connections_.end() || found->second.is_busy)
        return {};
    return std::chrono::nanoseconds(found->second.used.time_since_epoch()).count();
}

std::optional<Returned> LentConnections::next() {
    while (true) {
        epoll_event event{};
        const int count = epoll_wait(calls_, &event, 1, -1);
        if (count < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), "epoll_wait");
        if (count <= 0)
            continue;
        if (event.data.u64 == kBell)
            return {};
        if (auto returned = attend(static_cast<int64_t>(event.data.u64)))
            return returned;
    }
}

void LentConnections::close() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(bell_, &one, sizeof one);
}

std::optional<Returned> LentConnections::attend(int64_t number) {
    Connection *connection = nullptr; // valid while it is busy
    {
        const std::lock_guard lock(lock_);
        const auto found = connections_.find(number);
        if (found == connections_.end())
            return {};
        connection = &found->second;
        connection->is_busy = true;
    }
    auto unsent = answer(*connection);
    const std::lock_guard lock(lock_);
    connection->is_busy = false;
    if (unsent && unsent->empty() && !connection->is_recalled &&
        control(calls_, EPOLL_CTL_MOD, connection->file, kOnce, static_cast<uint64_t>(number)) == 0)
        return {};
    drop(number);
    return Returned{number, unsent.has_value(), std::move(unsent).value_or("")};
}

std::optional<std::string> LentConnections::answer(Connection &connection) {
    const int file = connection.file;
    std::array<char, kRequestBytesMax> buffer;
    const ssize_t size = recv(file, buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
    if (size <= 0)
        return {};
    auto entry = find({buffer.data(), static_cast<size_t>(size)});
    if (entry == nullptr || !run(*entry, connection))
        return {};
    recv(file, buffer.data(), static_cast<size_t>(size), MSG_DONTWAIT);
    std::string response = entry->known.response;
    entry.reset(); // before the response, so that a region unregistered by then is unmapped
    // Before the response: what its client asks of others next counts as later.
    connection.used = std::chrono::steady_clock::now();
    const ssize_t sent = send(file, response.data(), response.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    response.erase(0, sent < 0 ? 0 : static_cast<size_t>(sent));
    return response;
}

std::shared_ptr<LentConnections::Entry> LentConnections::find(std::string_view request) const {
    const std::lock_guard lock(lock_);
    const auto found = known_.find(request);
    return found == known_.end() ? nullptr : found->second;
}

bool LentConnections::run(Entry &entry, Connection &connection) {
    const std::unique_lock running(entry.running, std::try_to_lock);
    using Clock = std::chrono::steady_clock;
    const auto asked = Clock::now();
    connection.names[0] = entry.known.model;
    if (!running.owns_lock() || !(permits_.take_free() || waited(entry, connection)))
        return false;
    const auto start = Clock::now();
    const bool is_done = entry.known.run();
    const std::chrono::nanoseconds queued = start - asked, ran = Clock::now() - start;
    permits_.give_back(connection.names);
    if (is_done)
        entry.known.metrics->succeed({queued.count(), 0, ran.count(), 0});
    return is_done;
}

bool LentConnections::waited(const Entry &entry, const Connection &connection) {
    Place place{.names = connection.names, .metrics = entry.known.metrics};
    if (!permits_.take(place, kPermitPatience))
        return false;
    pollfd client{.fd = connection.file, .events = POLLRDHUP, .revents = 0};
    const bool is_gone = poll(&client, 1, 0) > 0;
    if (is_gone)
        permits_.give_back(connection.names);
    return !is_gone;
}

void LentConnections::drop(int64_t number) {
    const auto found = connections_.find(number);
    const int file = found->second.file;
    epoll_ctl(calls_, EPOLL_CTL_DEL, file, nullptr); // a duplicate keeps the socket open
    ::close(file);
    connections_.erase(found);
}

} // namespace tightship::driver
