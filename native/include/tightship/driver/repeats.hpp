/// Calls of a driver's clients that have come before and may be answered as they were, without
/// Python: the same bytes on the same connection run the same thing and get the same answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tightship::driver {

/// A message is a header of 16 bytes and a body; its last 8 bytes are the number of the call.
constexpr size_t kHeaderBytes = 16;
constexpr size_t kNumberOffset = 8;
constexpr size_t kNumberBytes = 8;
constexpr size_t kCallBytesMax = 1024;

/// A call, and what to do when it comes again.
struct Repeat {
    int64_t session;           ///< what `forget` names it by
    std::string call;          ///< a whole message, of any number
    std::function<bool()> run; ///< false where it must go the long way; one run at a time
    std::string answer;        ///< a whole message, of any number
};

/// What has come that is not for `Repeats` to answer.
struct Ready {
    int file;
    uint32_t events;
    std::string unsent; ///< an answer that the client's socket did not take
};

/// Waits for calls, and answers those that it knows. Any number of threads may wait.
class Repeats {
  public:
    /// `calls` is an epoll descriptor whose sockets are watched for one event at a time; it
    /// outlives this.
    explicit Repeats(int calls) : calls_(calls) {}
    Repeats(const Repeats &) = delete;
    Repeats &operator=(const Repeats &) = delete;

    /// The next event that is no call to be answered here; its file is not watched any more.
    Ready next();

    /// From now on a call on a connection is answered here.
    void remember(int file, Repeat repeat);

    /// No call of a session, or of any if it is 0, is answered here any more; one that runs has
    /// ended.
    void forget(int file, int64_t session);

    /// How many may run at once from now on; others go the long way.
    void set_room(int runs) { room_ = runs; }

  private:
    struct Entry {
        Repeat repeat;
        std::mutex running;
        bool is_gone = false;
    };
    using Entries = std::vector<std::shared_ptr<Entry>>;

    std::shared_ptr<Entry> find(int file);
    /// Whether a call was there and has been answered; `unsent` is what is left of that.
    bool answer(int file, std::string &unsent);
    bool run(Entry &entry);
    void watch(int file) const;

    int calls_;
    std::atomic<int> room_ = 0;
    std::atomic<int> running_ = 0;
    std::mutex entries_lock_;
    std::unordered_map<int, Entries> entries_;
};

} // namespace tightship::driver
