/// Fast-path HTTP connections: requests that recur are answered without Python, as long as the
/// same bytes mean the same.
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

/// Request that can be answered again by a run into memory that its client reads.
struct KnownRequest {
    std::string request;            ///< whole request, below `kRequestBytesMax`
    std::string response;           ///< whole response, below `kRequestBytesMax`
    std::function<bool()> run;      ///< false to use the slow path; one call at a time
    std::function<void()> released; ///< called once it is forgotten and no longer runs
    RequestMetrics *metrics;        ///< metrics of the model; valid until `released`
    std::string model;              ///< group by which its runs alternate
};

/// Connection that the fast path returns.
struct Returned {
    int64_t connection;
    bool is_known;      ///< whether the last request was answered here; else it is still unread
    std::string unsent; ///< part of a response that the socket did not accept
};

/// Answers known requests. Any number of threads may wait in `next`, or call other methods.
class LentConnections {
  public:
    /// Each run takes one of `permits`, which must outlive this. Throws `std::system_error`.
    explicit LentConnections(RunPermits &permits);
    ~LentConnections();
    LentConnections(const LentConnections &) = delete;
    LentConnections &operator=(const LentConnections &) = delete;

    /// Answers a request until its number is forgotten; one that is known already is released at
    /// once.
    void remember(int64_t number, KnownRequest known);
    void forget(int64_t number);

    /// Answers known requests on a socket. The number of the connection must be positive and new;
    /// the caller may close `file`. Runs alternate by model, then by account and client. Throws
    /// `std::system_error`.
    void lend(int64_t connection, int file, std::string account, std::string client);

    /// Takes a connection back. False during a request, or if `next` is about to return it: then it
    /// comes back by `next`.
    bool recall(int64_t connection);

    /// Time of the loan or the last response, in nanoseconds of the steady clock; none during a
    /// request, or if `next` is about to return the connection.
    std::optional<int64_t> idle_since(int64_t connection) const;

    /// Waits for a connection to return; none once this is closed.
    std::optional<Returned> next();

    /// Makes every `next` return none.
    void close() const;

  private:
    struct Connection {
        int file;
        Names names; ///< groups by which its runs alternate; the first is the model
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

    /// Answers a request on a connection; returns the connection if it leaves the fast path.
    std::optional<Returned> attend(int64_t number);
    /// Returns the part of the response that the socket did not accept; none without a known
    /// request.
    std::optional<std::string> answer(Connection &connection);
    std::shared_ptr<Entry> find(std::string_view request) const;
    bool run(Entry &entry, Connection &connection);
    /// Waits briefly for a run permit; false if none came or the client is gone.
    bool waited(const Entry &entry, const Connection &connection);
    void drop(int64_t connection);

    RunPermits &permits_;
    int calls_;
    int bell_;
    mutable std::mutex lock_; ///< guards the members below
    std::unordered_map<std::string, std::shared_ptr<Entry>, Hash, std::equal_to<>> known_;
    std::unordered_map<int64_t, std::string> requests_;
    std::unordered_map<int64_t, Connection> connections_;
};

} // namespace tightship::driver
