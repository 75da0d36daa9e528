/// Repeated calls of a driver's clients, answered without Python: the same bytes on the same
/// connection run the same thing and get the same reply.
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

/// Event of epoll for a call.
constexpr uint32_t kCalls = 1;

/// Call, and how to answer it again.
struct CachedCall {
    int64_t session;           ///< number by which `forget` refers to it
    std::string call;          ///< whole message; its number is ignored
    std::function<bool()> run; ///< false to use the slow path; one call at a time
    std::string answer;        ///< whole message; its number is replaced
    RequestMetrics *metrics;   ///< metrics of the model; valid until it is forgotten
    Names names;               ///< groups by which its runs alternate
};

/// Event that `CallCache` does not handle itself.
struct Ready {
    int file;
    uint32_t events;
    std::string unsent; ///< reply that the client's socket did not accept
};

/// Returns a reply with the number of a call.
std::string numbered(std::string answer, std::string_view call);

/// Sends a reply; returns it if the socket did not accept it.
std::string reply(int file, std::string answer);

/// Waits for calls and answers known ones. Any number of threads may wait.
class CallCache {
  public:
    /// `calls` is an epoll descriptor whose sockets are watched for one event at a time; each run
    /// takes one of `permits`. Both must outlive this.
    CallCache(int calls, RunPermits &permits) : calls_(calls), permits_(permits) {}
    CallCache(const CallCache &) = delete;
    CallCache &operator=(const CallCache &) = delete;

    /// Watches a connection. Throws `std::system_error`.
    void open(int file);

    /// Returns the next event that is not answered here. Until `watch` is called, no other thread
    /// gets the connection or reads its socket.
    Ready next();

    /// Watches a connection again that `next` has returned to this thread.
    void watch(int file, uint32_t events);

    /// Watches a connection for these events, on behalf of any thread: at once, or once the thread
    /// that answers it is done.
    void watch_for(int file, uint32_t events);

    /// Stops watching a connection and closes its ring.
    void close(int file);

    /// Answers a call on a connection here from now on.
    void remember(int file, CachedCall repeat);

    /// Stops answering the calls of a session, or all if it is 0, and waits for one that runs.
    void forget(int file, int64_t session);

    /// Answers no call of a connection until `resume`. No thread may be reading its socket.
    void pause(int file);

    /// Answers calls of a connection again. Harmless if they were not paused.
    void resume(int file);

    /// Adds a ring to a connection that has none; calls may come through it while a thread polls
    /// it. Throws `std::system_error`.
    void open_ring(int file, int memory);

    /// Sets how many threads may poll rings at once; none at first.
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
        int passes = 0; ///< replies without polling afterwards, because polling was in vain
        int passes_next = 1;
        std::mutex attended;
        std::atomic<bool> is_gone = false;
    };

    /// Right to read a socket: held by a thread, or given by the next event.
    struct Line {
        bool is_taken = false;
        uint32_t wanted = kCalls; ///< events to watch for once a call was answered here
    };

    /// Ring for this thread to poll; none if `open` is null.
    struct Polling {
        std::shared_ptr<OpenRing> open;
        std::unique_lock<std::mutex> lock;
    };

    /// Returns the known call with these bytes, or null.
    std::shared_ptr<Entry> find(int file, std::string_view call);
    /// Answers a call, and those that come through a ring soon after; returns a reply that the
    /// socket did not accept, or none if no call could be answered.
    std::optional<std::string> answer(int file);
    bool run(Entry &entry);
    /// Runs and counts a success; failures are counted on the slow path.
    static bool run_counted(const CachedCall &repeat);
    /// Announces, before a call that came at `came` is answered, that this thread polls the ring.
    Polling offer(int file, std::chrono::steady_clock::time_point came);
    /// Closes the ring of a connection and waits for the thread that polls it.
    void close_ring(int file);
    /// Answers calls through a ring while they come soon, unless a reply is unsent.
    void attend(int file, OpenRing &open, std::string &unsent);
    void serve(int file, OpenRing &open, std::string &unsent);
    /// Answers one call; returns whether more may come.
    bool take(int file, OpenRing &open, std::string &unsent);
    /// Reserves a connection for this thread; false if another thread has it. Files that are not
    /// connections need no reservation.
    bool take_hold(int file);
    /// Watches a connection again after a call was answered here.
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
