/// A line for each call, in the CSV log format of the RAPIDS Memory Manager.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/fork_guard.hpp"

#include <cstdio>
#include <mutex>
#include <string_view>

namespace tightship::resource {

/// Columns `Thread,Time,Action,Pointer,Size,Stream`; actions `allocate`, `allocate failure` and
/// `free`; the local time of day in microseconds, and stream 0. A block that goes is written
/// before it can come again, so that the order of the lines can be replayed.
class TracingResource final : public Adaptor, private Forkable {
  public:
    /// Writes over the file. Throws `Misuse` where it cannot be opened.
    TracingResource(std::shared_ptr<MemoryResource> upstream, const std::string &path);
    ~TracingResource() override;

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;

    /// Writes what is held back. Throws `Misuse` where a line could not be written, ever.
    void flush();
    const std::string &path() const { return path_; }

  private:
    void write(std::string_view action, const void *pointer, size_t size_bytes);

    void before_fork() override;
    void after_fork(bool) override { mutex_.unlock(); }

    std::string path_;
    std::mutex mutex_;
    std::FILE *file_;
    int64_t second_ = -1;    // that `clock_` shows
    char clock_[16] = {};    // hours, minutes, seconds
    ForkGuard guard_{*this}; // the file is flushed before a fork: no line is written twice
};

} // namespace tightship::resource
