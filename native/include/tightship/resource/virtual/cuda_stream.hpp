/// Stream of a CUDA device that was made elsewhere.
#pragma once

#include "tightship/resource/virtual/cuda_device.hpp"

namespace tightship::resource {

/// Wraps a stream. REQUIRES: the stream outlives this object, and is not the per-thread one.
class CudaStream final : public Stream {
  public:
    CudaStream(std::shared_ptr<const CudaContext> context, cuda::StreamHandle handle)
        : context_(std::move(context)), handle_(handle) {}

    std::shared_ptr<Fence> record() override;
    /// Orders the stream's next work after all work that `other` has so far; waits for that work if
    /// the driver cannot.
    void wait_for(cuda::StreamHandle other);
    const CudaContext &context() const { return *context_; }

  private:
    std::shared_ptr<const CudaContext> context_;
    cuda::StreamHandle handle_;
};

} // namespace tightship::resource
