/// Anonymous pages straight from the operating system.
#pragma once

#include "tightship/resource/pages.hpp"

namespace tightship::resource {

/// Zeroed, private to the process, huge where they span huge pages and the system has them.
class HostResource final : public PageResource {
  private:
    void *map(size_t size_bytes, size_t alignment) override;
    void unmap(void *pointer, size_t size_bytes) override;
};

} // namespace tightship::resource
