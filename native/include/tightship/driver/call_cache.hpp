/// Calls of a driver's clients that have come before and may be answered as they were, without
/// Python: the same bytes on the same connection run the same thing and get the same answer.
#pragma once

#include "tightship/driver/request_metrics.hpp"
#include "tightship/driver/ring.hpp"
#include "tightship/driver/run_permits.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tightship::driver {

/// A message is a header of 16 bytes and a body; its last 8 bytes are the number of the call.
constexpr size_t kHeaderBytes = 16;
constexpr size_t kNumberOffset = 8;
constexpr size_t kNumberBytes = 8;
constexpr size_t kCallBytesMax = 1024;

/// The event of a call that has come, as epoll has it.
constexpr uint32_t kCalls = 1;

/// A call, and what to do when it comes again.
struct CachedCall {
    int64_t session;           ///< what `forget` names it by
    std::string call;          ///< a whole message, of any number
    std::function<bool()> run; ///< false where it must go the long way; one run at a time
    std::string answer;        ///< a whole message, of any number
    RequestMetrics *metrics;   ///< of what runs; stays until it is forgotten
    Names names;               ///< of whose turn a run takes
};

/// What has come that is not for `CallCache` to answer.
struct Ready {
    int file;
    uint32_t events;
    std::string unsent; ///< an answer that the client's socket did not take
};

/// An answer under the number of a call.
std::string numbered(std::string answer, std::string_view call);

/// Sends an answer; what it returns the socket did not take.
std::string reply(int file, std::string answer);

/// Waits for calls, and answers those that it knows. Any number of threads may wait.
class CallCache {
  public:
    /// `calls` is an epoll descriptor whose sockets are watched for one event at a time; each run
    /// takes one of `permits`. Both outlive this.
    CallCache(int calls, RunPermits &permits) : calls_(calls), permits_(permits) {}
    CallCache(const CallCache &) = delete;
    CallCache &operator=(const CallCache &) = delete;

    /// A connection is watched from now on. Throws `std::system_error`.
    void open(int file);

    /// The next event that is no call to be answered here. Its connection is this thread's until it
    /// calls `watch`; no other is given it, or looks at its socket.
    Ready next();

    /// Who had a connection has it watched again.
    void watch(int file, uint32_t events);

    /// Anyone else has it watched for other events, at once or when who has it lets it go.
    void watch_for(int file, uint32_t events);

    /// A connection is not watched any more, and its ring is closed.
    void close(int file);

    /// From now on a call on a connection is answered here.
    void remember(int file, CachedCall repeat);

    /// No call of a session, or of any if it is 0, is answered here any more; one that runs has
    /// ended.
    void forget(int file, int64_t session);

    /// No call of a connection is answered here until `resume`. Its socket is not being looked at.
    void pause(int file);

    /// Calls of a connection are answered here again. Harmless where they were all the time.
    void resume(int file);

    /// Calls of a connection, which has no ring yet, may come through one too, while a thread
    /// attends to it. Throws `std::system_error`.
    void open_ring(int file, int memory);

    /// How many threads may attend to rings at once; none at first.
    void set_polling(int threads) { polling_max_ = threads; }

  private:
    struct Entry {
        CachedCall repeat;
        std::mutex running;
        bool is_gone = false;
    };
    using Entries = std::vector<std::shared_ptr<Entry>>;

    struct OpenRing {
        explicit OpenRing(int memory) : ring(memory) {}
        Ring ring;
        size_t position = 0;
        std::chrono::steady_clock::time_point answered;
        int passes = 0; ///< answers after which nothing is waited for, as that was in vain
        int passes_next = 1;
        std::mutex attended;
        std::atomic<bool> is_gone = false;
    };

    /// Who may look at a socket: the thread that has it, or whoever the system tells of it.
    struct Line {
        bool is_taken = false;
        uint32_t wanted = kCalls; ///< events it is watched for once a call was answered here
    };

    /// A ring that this thread is to look at; none where `open` is not set.
    struct Polling {
        std::shared_ptr<OpenRing> open;
        std::unique_lock<std::mutex> lock;
    };

    /// A call that is known.
    std::shared_ptr<Entry> find(int file, std::string_view call);
    /// Answers a call, and those that come through a ring soon after; an answer that the socket
    /// did not take, or none if no call was there that could be answered.
    std::optional<std::string> answer(int file);
    bool run(Entry &entry);
    /// Runs, counted if it ends well; others are counted on the long way.
    static bool run_counted(const CachedCall &repeat);
    /// Tells a client, before a call that came at some time is answered, that its ring is looked
    /// at.
    Polling offer(int file, std::chrono::steady_clock::time_point came);
    /// Nobody looks at the ring of a connection any more.
    void close_ring(int file);
    /// Answers calls that come through a ring while they come soon, if nothing is unsent.
    void attend(int file, OpenRing &open, std::string &unsent);
    void serve(int file, OpenRing &open, std::string &unsent);
    /// Answers one call; whether more may come.
    bool take(int file, OpenRing &open, std::string &unsent);
    /// Whether a connection is this thread's now, or no connection at all; else another has it.
    bool take_hold(int file);
    /// Has a connection watched whose call was answered here.
    void release(int file);
    void control(int operation, int file, uint32_t events) const;

    int calls_;
    RunPermits &permits_;
    std::mutex entries_lock_;
    std::unordered_map<int, Line> lines_; // under entries_lock_
    std::unordered_map<int, Entries> entries_;
    std::unordered_set<int> paused_; // under entries_lock_
    int polling_max_ = 0;
    std::atomic<int> polling_ = 0;
    std::unordered_map<int, std::shared_ptr<OpenRing>> rings_; // under entries_lock_
};

} // namespace tightship::driver
