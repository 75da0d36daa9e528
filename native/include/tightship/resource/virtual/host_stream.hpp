/// A stream on the processor: a thread that runs functions in the order they were given.
#pragma once

#include "tightship/resource/virtual/fence.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tightship::resource {

/// Functions must not throw. The end of the stream waits for all of them.
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

  private:
    /// What fences look at; outlives the stream for their sake.
    struct Progress {
        std::mutex mutex;
        std::condition_variable changed;
        uint64_t submitted = 0, done = 0;
    };
    class Point;

    void work();

    std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
    std::deque<std::function<void()>> queue_; // under the mutex of `progress_`
    bool is_ending_ = false;
    std::thread worker_;
};

} // namespace tightship::resource
