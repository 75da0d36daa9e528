/// What every memory resource does, whatever it is made of.
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

/// Addresses `[start, start + size_bytes)`; empty where nothing is known.
struct Range {
    uintptr_t start = 0;
    size_t size_bytes = 0;

    bool contains(const void *pointer) const {
        return reinterpret_cast<uintptr_t>(pointer) - start < size_bytes;
    }
};

/// Exact while no other call is in flight.
struct Statistics {
    size_t current_bytes = 0;  ///< in live blocks, as the resource rounds them
    size_t current_count = 0;  ///< live blocks
    size_t reserved_bytes = 0; ///< held to make blocks of, live ones included
    size_t touched_bytes = 0;  ///< of those, what has ever been in blocks or between them
};

/// What became of a block that was given back; all but `done` leave everything as it was.
/// `wrong_size`: not the size that it was asked for by. `wrong_alignment`: not the alignment that
/// it was asked for by, where that is recorded, else one that its address is not a multiple of.
enum class Freed : uint8_t {
    done,
    foreign,
    not_a_block,
    already_free,
    wrong_size,
    wrong_alignment,
    damaged,
};

/// What became of several blocks: the first fault, and the block that it is about.
struct FreedMany {
    Freed fault = Freed::done;
    const void *block = nullptr;

    void note(Freed freed, const void *of) {
        if (fault == Freed::done && freed != Freed::done)
            *this = {freed, of};
    }
    void note(const FreedMany &later) { note(later.fault, later.block); }
};

/// No request for more bytes, nor for a coarser alignment, can ever be met.
struct Reach {
    size_t size_bytes = SIZE_MAX;
    size_t alignment = SIZE_MAX;
};

/// Gives and takes back blocks of memory. Every method may be called from any thread.
///
/// A block belongs to one resource only, and stays where it is until it is given back. Failure
/// leaves a resource as it was. A resource calls its upstream with none of its own locks held,
/// for an upstream may call back into Python.
class MemoryResource {
  public:
    MemoryResource() = default;
    MemoryResource(const MemoryResource &) = delete;
    MemoryResource &operator=(const MemoryResource &) = delete;
    virtual ~MemoryResource() = default;

    /// At least `size_bytes` (0 counts as 1) at a multiple of `alignment`, or null.
    /// REQUIRES: `alignment` is a power of two.
    [[nodiscard]] virtual void *allocate(size_t size_bytes,
                                         size_t alignment = kDefaultAlignment) = 0;
    /// Takes a block back, with the size (0 counts as 1) and alignment it was asked for by.
    virtual Freed deallocate(void *pointer, size_t size_bytes,
                             size_t alignment = kDefaultAlignment) = 0;

    /// As many calls of `allocate`; returns how many of them gave a block, the first in `blocks`.
    [[nodiscard]] virtual size_t allocate_many(void **blocks, size_t count, size_t size_bytes,
                                               size_t alignment = kDefaultAlignment);
    /// As many calls of `deallocate`; returns the first fault, having taken back all the others.
    virtual FreedMany deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                                      size_t alignment = kDefaultAlignment);

    /// The `size_bytes` bytes from `start` on as one more block, in line with what came last;
    /// false, and nothing changed, where they are in use or the resource gives no block a place.
    [[nodiscard]] virtual bool allocate_at(const void * /*start*/, size_t /*size_bytes*/) {
        return false;
    }

    /// What the resource has in one piece round `pointer`; empty where it is not the resource's.
    virtual Range range_of(const void *pointer) const = 0;
    bool owns(const void *pointer) const { return range_of(pointer).contains(pointer); }

    /// Bytes that the live block which begins at `pointer` was asked for by; 0 where none does. A
    /// resource without a record of its blocks returns the most that one there can have.
    virtual size_t size_of(const void * /*pointer*/) const { return 0; }

    /// What can be asked for at all, whatever is in use.
    virtual Reach reach() const { return {}; }
    /// Whether a block that is given back can be handed out again.
    virtual bool supports_free() const { return true; }
    /// Whether blocks of one may be given back to the other.
    virtual bool is_equal(const MemoryResource &other) const { return this == &other; }
    /// Whether other processes see what is written to its blocks; a fork then copies none of it.
    virtual bool is_shared() const { return false; }
    virtual Statistics statistics() const = 0;
    /// Gives what is not in use back upstream; returns its bytes.
    virtual size_t trim() { return 0; }
    using Visit = std::function<void(const std::shared_ptr<MemoryResource> &)>;
    /// Shows every resource that this one keeps alive.
    virtual void each_upstream(const Visit &) const {}
    /// What is in a range of a block is not needed: whole pages of it may go back to the system,
    /// and are zeros when they are touched again. Returns their bytes; 0 where pages stay.
    virtual size_t discard(void * /*start*/, size_t /*size_bytes*/) { return 0; }
    /// Why a request was refused: a sentence with the numbers, and what to change.
    virtual std::string refusal(size_t size_bytes, size_t alignment) const;
    /// Bytes that are free, in whatever pieces; `SIZE_MAX` where only the system knows.
    virtual size_t available_bytes() const;
};

/// A request that cannot be met.
struct Refused : std::bad_alloc {
    Refused(const MemoryResource &resource, size_t size_bytes, size_t alignment);

    const char *what() const noexcept override { return message.c_str(); }

    std::string message;
    size_t requested_bytes;
    size_t available_bytes; ///< `SIZE_MAX` where nobody knows
};

/// An argument that no resource accepts, or a block that is not one.
struct Misuse : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// As `deallocate`, for destructors: where the resource has no memory to book the block as free, it
/// stays live.
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

/// The least multiple of `alignment`, a power of two, that is not below `value`; wraps to less.
constexpr uintptr_t align_up(uintptr_t value, size_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

} // namespace tightship::resource
