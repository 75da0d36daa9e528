/// CUDA device's memory as a paged device, and its streams.
#pragma once

#include "tightship/resource/virtual/cuda_driver.hpp"
#include "tightship/resource/virtual/fence.hpp"
#include "tightship/resource/virtual/paged_device.hpp"

namespace tightship::resource {

/// Primary context of a device, retained until the object's end.
class CudaContext {
  public:
    CudaContext(std::shared_ptr<const CudaDriver> driver, int ordinal);
    ~CudaContext();
    CudaContext(const CudaContext &) = delete;
    CudaContext &operator=(const CudaContext &) = delete;

    const CudaDriver &driver() const { return *driver_; }
    cuda::Device device() const { return device_; }
    /// Returns the properties of chunks created here, for `cuMemCreate`.
    cuda::AllocationProperties properties() const;

    /// Makes the context current in the calling thread; its destructor restores the one before.
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

/// Chunks of a device's memory, and addresses reserved by its driver. The processor cannot read
/// them.
class CudaDevice final : public PagedDevice {
  public:
    /// Opens a device; `driver_path` as for `CudaDriver::open`. Throws `Unavailable` if the device
    /// does not exist or cannot map chunks.
    explicit CudaDevice(int ordinal, const std::string &driver_path = {});

    size_t granularity_bytes() const override { return granularity_bytes_; }
    size_t largest_chunk_bytes() const override { return total_bytes_; }
    bool can_back(size_t block_bytes) const override { return block_bytes <= total_bytes_; }
    std::unique_ptr<PhysicalMemory> create_physical_memory(size_t size_bytes) override;
    std::unique_ptr<VirtualMemory> create_virtual_memory(size_t size_bytes,
                                                         size_t alignment) override;
    bool is_host() const override { return false; }
    bool maps_twice() const override { return true; }
    /// Accepts only streams of this device and driver: others may need the GIL, which the thread
    /// that waits here may hold.
    bool heeds(const Stream &stream) const override;
    /// Waits without touching the GIL: frameworks call on threads of their own, which must not wait
    /// for it.
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
