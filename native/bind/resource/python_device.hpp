/// Paged devices and streams implemented in Python.
#pragma once

#include "held_callable.hpp"
#include "returned_objects.hpp"

#include "tightship/resource/virtual/host_stream.hpp"
#include "tightship/resource/virtual/paged_device.hpp"

#include <atomic>

namespace tightship::bind {

/// Paged device of two Python functions, whose exceptions are refusals. Each resource has a copy of
/// its own, which shows the garbage collector the objects that the functions returned for it.
class PythonDevice final : public resource::PagedDevice {
  public:
    PythonDevice(nanobind::callable create_physical, nanobind::callable create_virtual,
                 size_t granularity_bytes, bool maps_twice)
        : create_physical_(std::move(create_physical)), create_virtual_(std::move(create_virtual)),
          granularity_bytes_(granularity_bytes), maps_twice_(maps_twice) {}

    size_t granularity_bytes() const override { return granularity_bytes_; }
    std::unique_ptr<resource::PhysicalMemory> create_physical_memory(size_t size_bytes) override;
    std::unique_ptr<resource::VirtualMemory> create_virtual_memory(size_t size_bytes,
                                                                   size_t alignment) override;
    bool maps_twice() const override { return maps_twice_; }
    std::shared_ptr<PythonDevice> copy() const {
        return std::make_shared<PythonDevice>(create_physical_.function(),
                                              create_virtual_.function(), granularity_bytes_,
                                              maps_twice_);
    }
    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(create_physical_.get().ptr());
        Py_VISIT(create_virtual_.get().ptr());
        return returned_.traverse(visit, arg);
    }
    /// Marks the device as garbage-collected: objects that its functions returned are not called
    /// any more.
    void collect() { returned_.collect(); }

  private:
    HeldCallable create_physical_, create_virtual_;
    size_t granularity_bytes_;
    bool maps_twice_;
    ReturnedObjects returned_;
};

/// Returns the device for a resource to keep: a copy of a Python device, else the device itself.
std::shared_ptr<resource::PagedDevice> own_device(const std::shared_ptr<resource::PagedDevice> &);
/// Shows the garbage collector the references of a Python device.
int visit_device(const std::shared_ptr<resource::PagedDevice> &device, visitproc visit, void *arg);
/// Marks a Python device as garbage-collected.
void collect_device(const std::shared_ptr<resource::PagedDevice> &device);

/// Takes a lock without the GIL, which the thread that holds the lock may be waiting for.
std::unique_lock<std::mutex> lock_without_gil(std::mutex &mutex);

/// Stream of a Python function that returns the fence behind all work so far, or None if all is
/// done. A fence has `is_signalled()`; one that raises counts as not signalled.
class PythonStream final : public resource::Stream {
  public:
    explicit PythonStream(nanobind::callable record) : record_(std::move(record)) {}

    std::shared_ptr<resource::Fence> record() override;
    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(record_.get().ptr());
        return returned_.traverse(visit, arg);
    }
    /// Marks the stream as garbage-collected: its fences are not called any more.
    void collect() { returned_.collect(); }

  private:
    HeldCallable record_;
    ReturnedObjects returned_; // each fence keeps its stream alive
};

/// Host stream that lets other threads of Python run while it is waited for, because the work may
/// need them.
class PythonHostStream final : public resource::HostStream {
  public:
    ~PythonHostStream() override;
    void submit(nanobind::callable work);
    std::shared_ptr<resource::Fence> record() override;

    /// Returns how many functions were submitted to all streams and have not ended. These keep
    /// their streams alive.
    static int64_t unfinished_count() { return unfinished_count_; }

  private:
    static inline std::atomic<int64_t> unfinished_count_ = 0;
};

} // namespace tightship::bind
