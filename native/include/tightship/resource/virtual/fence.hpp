/// Asynchronous work of a device, and fences that tell when it is done.
#pragma once

#include <chrono>
#include <memory>

namespace tightship::resource {

/// Point in a queue of work.
class Fence {
  public:
    virtual ~Fence() = default;
    /// Returns whether all work before the fence is done. Once true, always true. Never blocks.
    virtual bool is_signalled() = 0;
    /// Waits for the fence, at most `limit`; returns whether it is signalled.
    virtual bool wait_for(std::chrono::nanoseconds limit) = 0;
};

/// Queue of work that is done in order, asynchronously to the thread that adds it.
class Stream {
  public:
    virtual ~Stream() = default;
    /// Returns a fence behind all work added so far; null if all of it is done. Never fails: a
    /// stream that cannot make a fence waits for its work.
    virtual std::shared_ptr<Fence> record() = 0;
    /// Returns whether the stream can be destroyed without waiting.
    virtual bool ends_at_once() const { return true; }
};

} // namespace tightship::resource
