/// Bump allocation with one cursor for each processor, for blocks that end together.
#pragma once

#include "tightship/resource/chunk.hpp"

#include <atomic>
#include <mutex>
#include <vector>

namespace tightship::resource {

/// Cuts one region of `upstream` into equal parts, and serves a thread from the part of its current
/// processor, or, if that is used up, from the nearest part that is not. A block too large for a
/// part is laid over several whole ones. An allocation is one atomic operation; blocks are not
/// freed one by one: `reset` and `rewind` end all of them, or all since a mark.
///
///     region  | cursors | part 0 ...... | part 1 ...... | ...
///             64 bytes each, or apart in a block of `control`
///
/// A cursor is one word: the number of blocks in the part (32 bits), and of its granules in use (32
/// bits).
class BumpResource final : public MemoryResource {
  public:
    /// Takes `size_bytes` of `upstream`; a `part_count` of 0 means one part for each processor. If
    /// `control` is null, the cursors are inside the region. Throws `Refused`, `Misuse`.
    BumpResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes, size_t part_count = 0,
                 std::shared_ptr<MemoryResource> control = nullptr);

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    /// Frees nothing, and keeps no record of blocks: rejects ranges beyond the blocks handed out.
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    size_t allocate_many(void **blocks, size_t count, size_t size_bytes,
                         size_t alignment = kDefaultAlignment) override;
    /// Allocates only right behind the last block of a part.
    bool allocate_at(const void *start, size_t size_bytes) override;
    Range range_of(const void *pointer) const override;
    /// Returns the bytes from `pointer` on that have been handed out.
    size_t size_of(const void *pointer) const override;
    bool supports_free() const override { return false; }
    Reach reach() const override { return {.size_bytes = capacity_bytes()}; }
    bool is_shared() const override { return is_shared_; }
    Statistics statistics() const override;
    void each_upstream(const Visit &visit) const override {
        visit(region_.upstream());
        visit(control_.upstream());
    }

    size_t capacity_bytes() const { return part_bytes_ * cursors_.size(); }
    size_t part_count() const { return cursors_.size(); }

    /// Ends every block. REQUIRES: no thread is in `allocate`.
    void reset();
    /// Returns a mark of the present state, for `rewind`. REQUIRES: no thread is in `allocate`.
    uint64_t mark();
    /// Ends every block since the mark, and the marks made since; the mark stays valid. Returns
    /// false, and ends nothing, if the mark is not valid. REQUIRES: no thread is in `allocate`.
    bool rewind(uint64_t mark);

  private:
    struct alignas(64) Cursor {
        std::atomic<uint64_t> word{0};
    };
    struct Mark {
        uint64_t serial;
        std::vector<uint64_t> words;
    };
    struct Asked {
        size_t size_bytes;
        size_t alignment;
        size_t count; // blocks of that size, one after another
    };

    char *from_part(size_t part, const Asked &asked);
    char *from_parts(const Asked &asked);
    char *over_parts(size_t first, const Asked &asked);
    char *take(const Asked &asked);
    uintptr_t start_of(size_t part) const { return start_ + part * part_bytes_; }

    size_t used_in_all() const;

    bool is_shared_;
    Chunk region_;
    Chunk control_;
    uintptr_t start_ = 0;
    size_t part_bytes_ = 0;
    std::vector<Cursor *> cursors_;
    std::atomic<size_t> touched_bytes_{0}; // before the last reset or rewind
    std::mutex marks_mutex_;
    std::vector<Mark> marks_;
    uint64_t last_serial_ = 0;
};

} // namespace tightship::resource
