/// Stream on the processor: a thread that runs functions in the order they were added.
#pragma once

#include "tightship/resource/virtual/fence.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tightship::resource {

/// Runs functions, which must not throw. Its destructor waits for all of them, unless the stream is
/// abandoned.
class HostStream : public Stream {
  public:
    HostStream();
    ~HostStream() override;
    HostStream(const HostStream &) = delete;
    HostStream &operator=(const HostStream &) = delete;

    void submit(std::function<void()> work);
    std::shared_ptr<Fence> record() override;
    bool ends_at_once() const override;
    /// Returns when everything submitted so far is done.
    void synchronize();

  protected:
    /// Drops functions that have not begun, and stops waiting for the thread, which may never end.
    void abandon();

  private:
    /// State that fences and the thread read; outlives the stream, because fences and the thread
    /// may.
    struct Progress {
        std::mutex mutex;
        std::condition_variable changed;
        uint64_t submitted = 0, done = 0;
        std::deque<std::function<void()>> queue;
        bool is_ending = false;
    };
    class Point;

    static void work(Progress &progress);

    std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
    std::thread worker_;
};

} // namespace tightship::resource
