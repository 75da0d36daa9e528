/// Interface of memory resources: allocation, deallocation, statistics and errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

namespace tightship::resource {

constexpr size_t kDefaultAlignment = alignof(std::max_align_t);

/// Addresses `[start, start + size_bytes)`; empty if unknown.
struct Range {
    uintptr_t start = 0;
    size_t size_bytes = 0;

    bool contains(const void *pointer) const {
        return reinterpret_cast<uintptr_t>(pointer) - start < size_bytes;
    }
};

/// Byte counts of a resource; exact while no other call is in flight.
struct Statistics {
    size_t current_bytes = 0;  ///< in live blocks, as the resource rounds them
    size_t current_count = 0;  ///< live blocks
    size_t reserved_bytes = 0; ///< obtained to serve blocks from, live blocks included
    size_t touched_bytes = 0;  ///< part of `reserved_bytes` ever used for blocks or between them
};

/// Result of a deallocation; after any but `done`, everything is as before. `wrong_size`: not the
/// size that was requested. `wrong_alignment`: not the alignment that was requested, if that is
/// recorded, else one that the address is not a multiple of.
enum class Freed : uint8_t {
    done,
    foreign,
    not_a_block,
    already_free,
    wrong_size,
    wrong_alignment,
    damaged,
};

/// Result of deallocating several blocks: the first fault, and its block.
struct FreedMany {
    Freed fault = Freed::done;
    const void *block = nullptr;

    void note(Freed freed, const void *of) {
        if (fault == Freed::done && freed != Freed::done)
            *this = {freed, of};
    }
    void note(const FreedMany &later) { note(later.fault, later.block); }
};

/// Upper limits of a resource: a request for more bytes, or a coarser alignment, can never be met.
struct Reach {
    size_t size_bytes = SIZE_MAX;
    size_t alignment = SIZE_MAX;
};

/// Source of memory blocks. Every method may be called from any thread.
///
/// A block belongs to one resource only, and stays where it is until it is given back. Failure
/// leaves a resource as it was. A resource calls its upstream with none of its own locks held,
/// because an upstream may call back into Python.
class MemoryResource {
  public:
    MemoryResource() = default;
    MemoryResource(const MemoryResource &) = delete;
    MemoryResource &operator=(const MemoryResource &) = delete;
    virtual ~MemoryResource() = default;

    /// Returns at least `size_bytes` (0 counts as 1) at a multiple of `alignment`, or null.
    /// REQUIRES: `alignment` is a power of two.
    [[nodiscard]] virtual void *allocate(size_t size_bytes,
                                         size_t alignment = kDefaultAlignment) = 0;
    /// Takes a block back, with the size (0 counts as 1) and alignment that were requested.
    virtual Freed deallocate(void *pointer, size_t size_bytes,
                             size_t alignment = kDefaultAlignment) = 0;

    /// Does the work of `count` calls of `allocate`; returns how many gave a block, the first in
    /// `blocks`.
    [[nodiscard]] virtual size_t allocate_many(void **blocks, size_t count, size_t size_bytes,
                                               size_t alignment = kDefaultAlignment);
    /// Does the work of `count` calls of `deallocate`; returns the first fault, after taking back
    /// all other blocks.
    virtual FreedMany deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                                      size_t alignment = kDefaultAlignment);

    /// Allocates the `size_bytes` bytes from `start` on as one more block, next after the last one;
    /// returns false, and changes nothing, if they are in use or the resource does not support it.
    [[nodiscard]] virtual bool allocate_at(const void * /*start*/, size_t /*size_bytes*/) {
        return false;
    }

    /// Returns the resource's contiguous range around `pointer`; empty if the address is not the
    /// resource's.
    virtual Range range_of(const void *pointer) const = 0;
    bool owns(const void *pointer) const { return range_of(pointer).contains(pointer); }

    /// Returns the requested bytes of the live block that begins at `pointer`; 0 if none does. A
    /// resource without a record of its blocks returns the largest size that a block there can
    /// have.
    virtual size_t size_of(const void * /*pointer*/) const { return 0; }

    /// Returns the largest size and alignment that can be requested, whatever is in use.
    virtual Reach reach() const { return {}; }
    /// Returns whether a block that is given back can be handed out again.
    virtual bool supports_free() const { return true; }
    /// Returns whether each of the two resources takes back blocks of the other.
    virtual bool is_equal(const MemoryResource &other) const { return this == &other; }
    /// Returns whether other processes see what is written to its blocks; a fork copies none of
    /// them.
    virtual bool is_shared() const { return false; }
    virtual Statistics statistics() const = 0;
    /// Gives unused memory back upstream; returns its bytes.
    virtual size_t trim() { return 0; }
    using Visit = std::function<void(const std::shared_ptr<MemoryResource> &)>;
    /// Calls the visitor with every resource that this one keeps alive.
    virtual void each_upstream(const Visit &) const {}
    /// Declares the contents of a range of a block unneeded: its whole pages may go back to the
    /// system, and are zeros when next touched. Returns their bytes; 0 if pages stay.
    virtual size_t discard(void * /*start*/, size_t /*size_bytes*/) { return 0; }
    /// Returns why a request was refused: a sentence with the numbers, and what to change.
    virtual std::string refusal(size_t size_bytes, size_t alignment) const;
    /// Returns the free bytes, contiguous or not; `SIZE_MAX` if only the system knows.
    virtual size_t available_bytes() const;
};

/// Request that cannot be met.
struct Refused : std::bad_alloc {
    Refused(const MemoryResource &resource, size_t size_bytes, size_t alignment);

    const char *what() const noexcept override { return message.c_str(); }

    std::string message;
    size_t requested_bytes;
    size_t available_bytes; ///< `SIZE_MAX` if unknown
};

/// Argument that no resource accepts, or pointer that is not a live block.
struct Misuse : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// Deallocates a block in a destructor: if the resource lacks the memory to record the block as
/// free, the block stays live.
inline void give_back(MemoryResource &resource, void *pointer, size_t size_bytes,
                      size_t alignment) noexcept {
    try {
        resource.deallocate(pointer, size_bytes, alignment);
    } catch (const std::bad_alloc &) {
    }
}

inline bool is_aligned(const void *pointer, size_t alignment) {
    return (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1)) == 0;
}

/// Returns the least multiple of `alignment`, a power of two, that is not below `value`; wraps to a
/// smaller number.
constexpr uintptr_t align_up(uintptr_t value, size_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

} // namespace tightship::resource
