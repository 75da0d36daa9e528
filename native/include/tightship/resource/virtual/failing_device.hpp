/// Paged device that refuses chosen calls, for tests of failures.
#pragma once

#include "tightship/resource/virtual/paged_device.hpp"

#include <atomic>

namespace tightship::resource {

/// Refuses `count` calls from number `first` on, counted from 0, of those that may be refused:
/// create, reserve, map, unmap, grow.
class FailingDevice final : public PagedDevice {
  public:
    FailingDevice(std::shared_ptr<PagedDevice> device, size_t first, size_t count = 1)
        : state_(std::make_shared<State>()), device_(std::move(device)) {
        state_->first = first;
        state_->count = count;
    }

    const std::shared_ptr<PagedDevice> &device() const { return device_; }
    size_t granularity_bytes() const override { return device_->granularity_bytes(); }
    size_t largest_chunk_bytes() const override { return device_->largest_chunk_bytes(); }
    bool can_back(size_t block_bytes) const override { return device_->can_back(block_bytes); }
    std::unique_ptr<PhysicalMemory> create_physical_memory(size_t size_bytes) override;
    std::unique_ptr<VirtualMemory> create_virtual_memory(size_t size_bytes,
                                                         size_t alignment) override;
    bool is_host() const override { return device_->is_host(); }
    bool maps_twice() const override { return device_->maps_twice(); }
    bool is_shared() const override { return device_->is_shared(); }
    bool heeds(const Stream &stream) const override { return device_->heeds(stream); }
    std::unique_lock<std::mutex> enter(std::mutex &mutex) const override {
        return device_->enter(mutex);
    }

    size_t call_count() const { return state_->calls; }

    struct State {
        std::atomic<size_t> calls{0};
        size_t first = 0, count = 0;

        bool refuses() { return calls++ - first < count; }
    };

  private:
    std::shared_ptr<State> state_;
    std::shared_ptr<PagedDevice> device_;
};

} // namespace tightship::resource
