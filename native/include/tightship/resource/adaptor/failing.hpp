/// Injected refusals, and retries after a refusal.
#pragma once

#include "tightship/resource/adaptor.hpp"

#include <atomic>
#include <functional>

namespace tightship::resource {

/// Refuses allocations number `first` to `first + count - 1`, counted from 1.
class FailingResource final : public Adaptor {
  public:
    FailingResource(std::shared_ptr<MemoryResource> upstream, uint64_t first, uint64_t count = 1);

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;

    /// Returns the number of requests so far, refused ones included.
    uint64_t allocation_count() const { return allocation_count_; }

  private:
    bool refuses(uint64_t number) const { return number - first_ < count_; }

    uint64_t first_, count_;
    std::atomic<uint64_t> allocation_count_{0};
};

/// Retries a refused request as long as `callback`, which gets the refused bytes, returns true.
class FailureCallbackResource final : public Adaptor {
  public:
    using Callback = std::function<bool(size_t size_bytes)>;

    FailureCallbackResource(std::shared_ptr<MemoryResource> upstream, Callback callback)
        : Adaptor(std::move(upstream)), callback_(std::move(callback)) {}

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;

    const Callback &callback() const { return callback_; }

  private:
    Callback callback_;
};

} // namespace tightship::resource
