/// Calls on blocks so large that other threads of Python's are let in meanwhile.
#pragma once

#include "gil.hpp"

#include <cstddef>
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <utility>

namespace tightship::bind {

/// To map, fill or unmap less takes no longer than Python's switch interval of 5 ms.
constexpr size_t kLongBytes = size_t{16} << 20;

/// Whether this thread holds the GIL. Every Python exports the function that tells, but its limited
/// API does not declare it, so it is looked up; where it is missing the answer is no.
inline bool holds_gil() {
    static const auto check = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
    return check != nullptr && check() != 0;
}

/// What `work` returns; it runs without the GIL where it is of `kLongBytes` or more.
template <class Work> auto call_long(size_t size_bytes, Work &&work) {
    if (size_bytes < kLongBytes || !holds_gil()) [[likely]]
        return std::forward<Work>(work)();
    const GilReleased release;
    return std::forward<Work>(work)();
}

} // namespace tightship::bind
