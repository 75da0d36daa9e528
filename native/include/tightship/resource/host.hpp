/// Anonymous pages from the operating system.
#pragma once

#include "tightship/resource/pages.hpp"

#include <atomic>

namespace tightship::resource {

/// Gives zeroed private pages, huge ones if the range spans them and the system has them.
class HostResource final : public PageResource {
  public:
    struct Settings {
        int node = -1;          ///< NUMA node that pages come from while it has some; -1 any
        bool is_filled = false; ///< backed with memory at once, not when touched
        bool is_locked = false; ///< kept in memory, as far as the process may
    };

    HostResource() = default;
    /// Throws `Misuse` if the machine lacks the node.
    explicit HostResource(Settings settings);

    /// Keeps pages that were filled from the start, and locked ones.
    size_t discard(void *start, size_t size_bytes) override;

    /// Returns the bytes that could be locked, of all blocks of all time.
    size_t locked_bytes() const { return locked_bytes_; }

  private:
    void *map(size_t size_bytes, size_t alignment) override;
    void unmap(void *pointer, size_t size_bytes) override;

    Settings settings_;
    std::atomic<size_t> locked_bytes_{0};
};

} // namespace tightship::resource
