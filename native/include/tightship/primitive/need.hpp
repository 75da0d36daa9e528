/// Two kinds of memory that a primitive needs; neither becomes the other.
#pragma once

#include <cstddef>
#include <memory>

namespace tightship::primitive {

/// Memory needed only while the primitive runs; from a pool, which the next primitive reuses.
struct Temporary {
    size_t size_bytes = 0;
    size_t alignment = 64;
};

/// Memory kept as long as the primitive is used, such as packed weights; shared by users of the
/// same data, and never in a pool.
struct Persistent {
    std::shared_ptr<const void> owner;
    char *data = nullptr;
};

} // namespace tightship::primitive
