/// The two kinds of memory that a primitive needs; neither becomes the other.
#pragma once

#include <cstddef>
#include <memory>

namespace tightship::primitive {

/// Needed only while the primitive runs: from a pool, which the next primitive has then.
struct Temporary {
    size_t size_bytes = 0;
    size_t alignment = 64;
};

/// Owned as long as the primitive is used, as packed weights are; shared with whoever needs the
/// same, and never in a pool.
struct Persistent {
    std::shared_ptr<const void> owner;
    char *data = nullptr;
};

} // namespace tightship::primitive
