/// A stream of a CUDA device that somebody else made.
#pragma once

#include "tightship/resource/virtual/cuda_device.hpp"

namespace tightship::resource {

/// REQUIRES: the stream outlives it, and is not each thread's own.
class CudaStream final : public Stream {
  public:
    CudaStream(std::shared_ptr<const CudaContext> context, cuda::StreamHandle handle)
        : context_(std::move(context)), handle_(handle) {}

    std::shared_ptr<Fence> record() override;
    /// Has its next work begin when all work of `other` so far is done; waits for that where it
    /// cannot.
    void wait_for(cuda::StreamHandle other);
    const CudaContext &context() const { return *context_; }

  private:
    std::shared_ptr<const CudaContext> context_;
    cuda::StreamHandle handle_;
};

} // namespace tightship::resource
