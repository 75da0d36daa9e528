/// Limit on the bytes that are live at once.
#pragma once

#include "tightship/resource/adaptor.hpp"

#include <atomic>

namespace tightship::resource {

/// Counts requested bytes; current_bytes() <= limit_bytes() at all times.
class LimitingResource final : public Adaptor {
  public:
    /// `setting` is the name that refusals give to the setting behind the limit.
    LimitingResource(std::shared_ptr<MemoryResource> upstream, size_t limit_bytes,
                     std::string setting = {});

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    Reach reach() const override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    size_t available_bytes() const override;

    size_t current_bytes() const { return current_bytes_; }
    size_t limit_bytes() const { return limit_bytes_; }

  private:
    bool admits(size_t size_bytes);

    size_t limit_bytes_;
    std::string setting_;
    std::atomic<size_t> current_bytes_{0};
};

} // namespace tightship::resource
