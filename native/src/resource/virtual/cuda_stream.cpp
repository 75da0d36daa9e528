#include "tightship/resource/virtual/cuda_stream.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace tightship::resource {

namespace {

/// Time between two polls of an event that is waited for.
constexpr std::chrono::microseconds kFirstNap{10};
constexpr std::chrono::microseconds kLongestNap{500};

class CudaFence final : public Fence {
  public:
    /// Makes a fence. REQUIRES: the context is current in the thread.
    explicit CudaFence(std::shared_ptr<const CudaContext> context) : context_(std::move(context)) {
        if (context_->driver().event_create(&event_, cuda::kWithoutTiming) != cuda::kSuccess)
            event_ = nullptr;
    }
    ~CudaFence() override {
        if (event_ != nullptr)
            (void)context_->driver().event_destroy(event_);
    }

    bool record(cuda::StreamHandle stream) {
        return event_ != nullptr &&
               context_->driver().event_record(event_, stream) == cuda::kSuccess;
    }
    bool delay(cuda::StreamHandle stream) {
        return context_->driver().stream_wait_event(stream, event_, 0) == cuda::kSuccess;
    }
    bool is_signalled() override {
        if (!is_signalled_) {
            const CudaContext::Current current(*context_);
            is_signalled_ = current && context_->driver().event_query(event_) == cuda::kSuccess;
        }
        return is_signalled_;
    }
    /// Polls repeatedly, because the driver waits without a limit or not at all.
    bool wait_for(std::chrono::nanoseconds limit) override {
        const auto deadline = std::chrono::steady_clock::now() + limit;
        for (auto nap = kFirstNap; !is_signalled(); nap = std::min(2 * nap, kLongestNap)) {
            if (std::chrono::steady_clock::now() >= deadline)
                return false;
            std::this_thread::sleep_for(nap);
        }
        return true;
    }

  private:
    std::shared_ptr<const CudaContext> context_;
    cuda::Event event_ = nullptr;
    std::atomic<bool> is_signalled_{false};
};

} // namespace

std::shared_ptr<Fence> CudaStream::record() {
    const CudaContext::Current current(*context_);
    auto fence = std::make_shared<CudaFence>(context_);
    if (fence->record(handle_))
        return fence;
    (void)context_->driver().stream_synchronize(handle_);
    return nullptr;
}

void CudaStream::wait_for(cuda::StreamHandle other) {
    if (other == handle_)
        return;
    const CudaContext::Current current(*context_);
    CudaFence fence(context_);
    if (!fence.record(other) || !fence.delay(handle_))
        (void)context_->driver().stream_synchronize(other);
}

} // namespace tightship::resource
