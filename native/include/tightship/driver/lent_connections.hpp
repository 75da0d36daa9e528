/// Connections of HTTP whose next request has probably come before: it is answered as it was,
/// without Python, while the same bytes mean the same.
#pragma once

#include "tightship/driver/request_metrics.hpp"
#include "tightship/driver/run_permits.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tightship::driver {

constexpr size_t kRequestBytesMax = 8192;

/// A request that may be answered again, by a run into memory that its client reads.
struct KnownRequest {
    std::string request;            ///< all of its bytes, fewer than `kRequestBytesMax`
    std::string response;           ///< likewise
    std::function<bool()> run;      ///< false where it must go the long way; one at a time
    std::function<void()> released; ///< called once it is forgotten and does not run
    RequestMetrics *metrics;        ///< of what it runs; stays until it is released
    std::string model;              ///< by which it takes turns
};

/// A connection that is lent no more.
struct Returned {
    int64_t connection;
    bool is_known;      ///< whether what had come was answered here, else it is still to be read
    std::string unsent; ///< of a response, what the socket did not take
};

/// Answers known requests. Any number of threads may wait in `next`, and call the rest meanwhile.
class LentConnections {
  public:
    /// A run takes one of `permits`, which outlive this. Throws `std::system_error`.
    explicit LentConnections(RunPermits &permits);
    ~LentConnections();
    LentConnections(const LentConnections &) = delete;
    LentConnections &operator=(const LentConnections &) = delete;

    /// Answer a request from now on, until its number is forgotten; one that is known already is
    /// released at once.
    void remember(int64_t number, KnownRequest known);
    void forget(int64_t number);

    /// Answers what comes by a socket, while it is known. The number of the connection is positive
    /// and new; the socket stays usable if the caller closes `file`. Its runs take turns by the
    /// model, then by account and client. Throws `std::system_error`.
    void lend(int64_t connection, int file, std::string account, std::string client);

    /// Ends that. False if a request is being answered, or the connection is on its way back
    /// already: then it comes back by `next`.
    bool recall(int64_t connection);

    /// When it was lent or last answered, by the steady clock, in nanoseconds; none if a request is
    /// being answered, or it is on its way back.
    std::optional<int64_t> idle_since(int64_t connection) const;

    /// Waits for a connection that comes back; none once this is closed.
    std::optional<Returned> next();

    /// Has every `next` return none from now on.
    void close() const;

  private:
    struct Connection {
        int file;
        Names names; ///< of whose turns its runs take; the first is the model's
        std::chrono::steady_clock::time_point used = std::chrono::steady_clock::now();
        bool is_busy = false;
        bool is_recalled = false;
    };
    struct Entry {
        explicit Entry(KnownRequest known) : known(std::move(known)) {}
        Entry(const Entry &) = delete;
        Entry &operator=(const Entry &) = delete;
        ~Entry() { known.released(); }
        KnownRequest known;
        std::mutex running;
    };
    struct Hash : std::hash<std::string_view> {
        using is_transparent = void;
    };

    /// Answers what has come on a connection; it, if it is lent no more.
    std::optional<Returned> attend(int64_t number);
    /// What the socket did not take of the response; none if there was no known request.
    std::optional<std::string> answer(Connection &connection);
    std::shared_ptr<Entry> find(std::string_view request) const;
    bool run(Entry &entry, Connection &connection);
    /// Waits a little for a turn; whether it has come to a client that is still there.
    bool waited(const Entry &entry, const Connection &connection);
    void drop(int64_t connection);

    RunPermits &permits_;
    int calls_;
    int bell_;
    mutable std::mutex lock_; ///< of what follows
    std::unordered_map<std::string, std::shared_ptr<Entry>, Hash, std::equal_to<>> known_;
    std::unordered_map<int64_t, std::string> requests_;
    std::unordered_map<int64_t, Connection> connections_;
};

} // namespace tightship::driver
