/// A CUDA device's memory as a paged device, and its streams.
#pragma once

#include "tightship/resource/virtual/cuda_driver.hpp"
#include "tightship/resource/virtual/fence.hpp"
#include "tightship/resource/virtual/paged_device.hpp"

namespace tightship::resource {

/// The primary context of a device, held until it goes.
class CudaContext {
  public:
    CudaContext(std::shared_ptr<const CudaDriver> driver, int ordinal);
    ~CudaContext();
    CudaContext(const CudaContext &) = delete;
    CudaContext &operator=(const CudaContext &) = delete;

    const CudaDriver &driver() const { return *driver_; }
    cuda::Device device() const { return device_; }
    /// What `cuMemCreate` makes here.
    cuda::AllocationProperties properties() const;

    /// Makes the context the calling thread's until it goes; what was the thread's comes back.
    class Current {
      public:
        explicit Current(const CudaContext &context);
        ~Current();
        Current(const Current &) = delete;
        Current &operator=(const Current &) = delete;

        explicit operator bool() const { return is_current_; }

      private:
        const CudaDriver &driver_;
        bool is_current_;
    };

  private:
    std::shared_ptr<const CudaDriver> driver_;
    cuda::Device device_ = 0;
    cuda::Context context_ = nullptr;
};

/// Chunks of a device's memory and addresses of its driver's. The processor cannot read them.
class CudaDevice final : public PagedDevice {
  public:
    /// `driver_path` as for `CudaDriver::open`. Throws `Unavailable` where there is no such device,
    /// or it cannot map chunks.
    explicit CudaDevice(int ordinal, const std::string &driver_path = {});

    size_t granularity_bytes() const override { return granularity_bytes_; }
    size_t largest_chunk_bytes() const override { return total_bytes_; }
    bool can_back(size_t block_bytes) const override { return block_bytes <= total_bytes_; }
    std::unique_ptr<PhysicalMemory> create_physical_memory(size_t size_bytes) override;
    std::unique_ptr<VirtualMemory> create_virtual_memory(size_t size_bytes,
                                                         size_t alignment) override;
    bool is_host() const override { return false; }
    bool maps_twice() const override { return true; }
    /// Only streams of its own: others may need Python's lock, which who waits here may hold.
    bool heeds(const Stream &stream) const override;
    /// Frameworks call on threads of their own, which must not wait for Python's.
    std::unique_lock<std::mutex> enter(std::mutex &mutex) const override {
        return std::unique_lock(mutex);
    }
    size_t total_bytes() const { return total_bytes_; }
    const std::shared_ptr<const CudaContext> &context() const { return context_; }

  private:
    std::shared_ptr<const CudaContext> context_;
    size_t granularity_bytes_ = 0;
    size_t total_bytes_ = 0;
};

} // namespace tightship::resource
