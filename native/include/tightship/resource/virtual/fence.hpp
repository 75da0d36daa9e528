/// Work that a device does on its own, and how to know that it is done.
#pragma once

#include <chrono>
#include <memory>

namespace tightship::resource {

/// A point in a queue of work.
class Fence {
  public:
    virtual ~Fence() = default;
    /// Whether all that came before it is done. Once true, always true. Never blocks.
    virtual bool is_signalled() = 0;
    /// Returns when it is, or after `limit`; whether it is.
    virtual bool wait_for(std::chrono::nanoseconds limit) = 0;
};

/// Work done one after the other, beside the thread that asks for it.
class Stream {
  public:
    virtual ~Stream() = default;
    /// A fence behind everything asked for so far; null where all of it is done. Never fails: a
    /// stream that cannot make one waits for its work.
    virtual std::shared_ptr<Fence> record() = 0;
    /// Whether its end would wait for nothing.
    virtual bool ends_at_once() const { return true; }
};

} // namespace tightship::resource
