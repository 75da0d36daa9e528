/// Log of calls, a line each, in the CSV format of the RAPIDS Memory Manager.
#pragma once

#include "tightship/resource/adaptor.hpp"
#include "tightship/resource/fork_guard.hpp"

#include <cstdio>
#include <mutex>
#include <string_view>

namespace tightship::resource {

/// Writes columns `Thread,Time,Action,Pointer,Size,Stream`; actions `allocate`, `allocate failure`
/// and `free`; the local time of day in microseconds, and stream 0. The line of a freed block is
/// written before its address can be handed out again, so that the log can be replayed in the order
/// of its lines.
class TracingResource final : public Adaptor, private Forkable {
  public:
    /// Truncates the file. Throws `Misuse` if it cannot be opened.
    TracingResource(std::shared_ptr<MemoryResource> upstream, const std::string &path);
    ~TracingResource() override;

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;

    /// Writes buffered lines. Throws `Misuse` if any line could not be written, now or earlier.
    void flush();
    const std::string &path() const { return path_; }

  private:
    void write(std::string_view action, const void *pointer, size_t size_bytes);

    void before_fork() override;
    void after_fork(bool) override { mutex_.unlock(); }

    std::string path_;
    std::mutex mutex_;
    std::FILE *file_;
    int64_t second_ = -1;    // shown by `clock_`
    char clock_[16] = {};    // hours, minutes, seconds
    ForkGuard guard_{*this}; // flushes the file before a fork, so that no line is written twice
};

} // namespace tightship::resource
