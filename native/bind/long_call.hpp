/// Calls on blocks so large that other threads of Python's are let in meanwhile.
#pragma once

#include <cstddef>
#include <nanobind/nanobind.h>
#include <utility>

namespace tightship::bind {

/// To map, fill or unmap less takes no longer than Python's switch interval of 5 ms.
constexpr size_t kLongBytes = size_t{16} << 20;

/// What `work` returns; it runs without the GIL where it is of `kLongBytes` or more.
template <class Work> auto call_long(size_t size_bytes, Work &&work) {
    if (size_bytes < kLongBytes || PyGILState_Check() == 0) [[likely]]
        return std::forward<Work>(work)();
    const nanobind::gil_scoped_release release;
    return std::forward<Work>(work)();
}

} // namespace tightship::bind
