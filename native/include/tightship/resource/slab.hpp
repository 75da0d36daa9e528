/// Blocks of one size: the fastest way to a small one.
#pragma once

#include "tightship/resource/chunk.hpp"
#include "tightship/resource/fork_guard.hpp"
#include "tightship/resource/free_bits.hpp"
#include "tightship/resource/thread_caches.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <optional>

namespace tightship::resource {

/// Cuts one region of `upstream` into blocks of `block_bytes`, and keeps a bit for each.
///
///     region  | bits and their summaries | block 0 | block 1 | ...
///               or apart, in a block of `control`
///
/// A thread takes the free blocks of a whole word, 64 at most, into its thread cache, by one atomic
/// operation, and serves itself from there. What it gives back waits on a stack in its thread
/// cache, the last one first out, and goes to the bitmap when that is full. When the bitmap is used
/// up, what the thread caches hold is called back: no block is out of reach.
///
/// Equation, while no call is in flight:
///     blocks = live + bits set in the bitmap + bits in thread caches + blocks on their stacks
///
/// Two bytes for each block, in memory of the process, keep the size it was asked for by while it
/// is out, so that a block that comes back twice, or with another size, is refused. Of 64 blocks
/// that are asked for at once two bytes for all of them do, until one comes back alone. They do not
/// know what other processes of shared memory did: there any size that fits is taken.
class SlabResource final : public MemoryResource, private Forkable {
  public:
    /// Takes `size_bytes` of `upstream`; `control` null keeps the bits inside the region.
    /// Throws `Refused`, `Misuse`.
    SlabResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes, size_t block_bytes,
                 std::shared_ptr<MemoryResource> control = nullptr);

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    /// Sees a block that is free already; in shared memory, one that this process gave back.
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    size_t allocate_many(void **blocks, size_t count, size_t size_bytes,
                         size_t alignment = kDefaultAlignment) override;
    FreedMany deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                              size_t alignment = kDefaultAlignment) override;
    /// One block.
    Range range_of(const void *pointer) const override;
    size_t size_of(const void *pointer) const override;
    Reach reach() const override { return {block_bytes_, alignment_}; }
    bool is_shared() const override { return is_shared_; }
    Statistics statistics() const override;
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    void each_upstream(const Visit &visit) const override {
        visit(region_.upstream());
        visit(control_.upstream());
    }

    /// Larger sizes are kept apart from the others.
    static constexpr size_t kNoted = 0xFFFE;

    /// A block of the calling thread's cache, marked with `noted`, the size it is asked for by;
    /// what `otherwise()` returns where the thread cache has none. REQUIRES: the slab serves the
    /// request.
    template <typename Otherwise>
    [[gnu::always_inline]] void *from_cache(size_t noted, Otherwise otherwise) {
        ThreadCache *cache = caches_.likely();
        if (!cache->enter()) [[unlikely]]
            return otherwise();
        if (const uint32_t depth = cache->get_depth(); depth != 0) [[likely]] {
            char *given = cache->pop(depth);
            cache->leave();
            mark(quotient(given - start_), noted);
            return given;
        }
        const uint64_t bits = cache->get_bits();
        const size_t index = cache->get_word() * 64 + lowest(bits);
        cache->set_bits(bits & (bits - 1));
        cache->leave();
        if (bits == 0)
            return otherwise();
        mark(index, noted);
        return start_ + index * block_bytes_;
    }
    /// Puts a block into the calling thread's cache; false, and nothing changed, where that is
    /// full, or no such block of `kNoted` bytes at most is out.
    [[gnu::always_inline]] bool to_cache(void *pointer, size_t size_bytes, size_t alignment) {
        const size_t offset = static_cast<const char *>(pointer) - start_;
        const size_t index = quotient(offset);
        if (offset >= capacity_bytes_ || index * block_bytes_ != offset ||
            size_bytes - 1 >= kNoted || !is_aligned(pointer, alignment)) [[unlikely]]
            return false;
        ThreadCache *cache = caches_.likely();
        if (!cache->enter()) [[unlikely]]
            return false;
        const uint32_t depth = cache->get_depth();
        const bool goes = note(index) == size_bytes && depth != ThreadCache::kDepth;
        if (goes) [[likely]] {
            mark(index, kFree);
            cache->push(depth, static_cast<char *>(pointer));
        }
        cache->leave();
        return goes;
    }

    bool serves(size_t size_bytes, size_t alignment) const {
        return size_bytes <= block_bytes_ && alignment <= alignment_;
    }
    bool contains(const void *pointer) const {
        return static_cast<size_t>(static_cast<const char *>(pointer) - start_) < capacity_bytes_;
    }
    size_t block_bytes() const { return block_bytes_; }
    size_t block_count() const { return block_count_; }
    size_t capacity_bytes() const { return capacity_bytes_; }
    /// The largest power of two that every block is at a multiple of.
    size_t alignment() const { return alignment_; }

  private:
    static constexpr uint16_t kFree = 0, kLarge = kNoted + 1, kDividing = kLarge;
    struct Free {
        void operator()(void *pointer) const { std::free(pointer); }
    };

    static size_t lowest(uint64_t bits) { return static_cast<size_t>(std::countr_zero(bits)); }
    char *block(size_t word, uint64_t bits) const {
        return start_ + (word * 64 + lowest(bits)) * block_bytes_;
    }
    /// Of a block. Relaxed: a thread that gives one back may look at another's that is divided.
    std::atomic_ref<uint16_t> note_of(size_t index) const {
        return std::atomic_ref<uint16_t>(noted_[index]);
    }
    size_t note(size_t index) const { return note_of(index).load(std::memory_order_relaxed); }
    void mark(size_t index, size_t noted) {
        note_of(index).store(static_cast<uint16_t>(noted), std::memory_order_relaxed);
    }
    /// What a block is marked with.
    static size_t noted_of(size_t size_bytes) {
        return size_bytes > kNoted ? kLarge : std::max<size_t>(size_bytes, 1);
    }
    /// The size that a block was asked for by; 0 where this process did not ask for it.
    size_t asked(size_t index) const {
        const size_t noted = note(index);
        if (noted == kLarge)
            return large_[index];
        if (noted != kFree)
            return noted;
        const size_t whole = whole_[index / 64].load(std::memory_order_acquire);
        return whole != kDividing ? whole : note(index);
    }
    /// What an offset is in blocks, where that leaves no rest.
    size_t quotient(size_t offset) const {
        return static_cast<size_t>(static_cast<unsigned __int128>(offset) * inverse_ >> 64);
    }
    /// Done, with the index of the block that begins at `pointer`, or what is wrong with that.
    Freed locate(const void *pointer, size_t &index) const {
        const size_t offset = static_cast<const char *>(pointer) - start_;
        if (offset >= capacity_bytes_) [[unlikely]]
            return Freed::foreign;
        index = quotient(offset);
        return index * block_bytes_ == offset ? Freed::done : Freed::not_a_block;
    }
    static uint64_t bit(size_t index) { return uint64_t{1} << index % 64; }
    /// The word's `bits` as addresses; returns how many.
    size_t spread(void **blocks, size_t word, uint64_t bits, size_t noted);
    void mark_word(size_t word, size_t noted);
    bool is_word(size_t word, size_t noted) const;
    void divide(size_t word);
    bool unmark_word(size_t word, size_t noted);

    [[gnu::noinline]] void *allocate_slowly(size_t size_bytes, size_t alignment);
    [[gnu::noinline]] void *from_bitmap(size_t noted);
    [[gnu::noinline]] Freed deallocate_slowly(void *pointer, size_t size_bytes, size_t alignment);
    uint64_t claim(size_t &word, size_t limit);
    size_t first_word() const;
    void keep(ThreadCache *cache, size_t word, uint64_t bits);
    bool collect();
    bool is_free(const void *pointer, size_t index);
    Freed check(const void *pointer, size_t index, size_t size_bytes, size_t alignment);
    void empty_stack(ThreadCache &cache);
    void empty_into_bitmap(ThreadCache &cache);
    FreedMany release_together(void *const *blocks, size_t &count, size_t index, size_t size_bytes);
    FreedMany release_run(size_t word, uint64_t bits, size_t size_bytes);

    void before_fork() override;
    void after_fork(bool is_child) override;

    // What every call reads, together.
    char *start_ = nullptr; // of block 0
    size_t capacity_bytes_ = 0;
    size_t block_bytes_;
    size_t alignment_ = 1;
    uint64_t inverse_ = 0; // 2**64 / block_bytes, rounded up
    ThreadCaches caches_;
    /// Of each block: `kFree`, its size, or `kLarge`; written by the thread that has the block.
    std::unique_ptr<uint16_t[], Free> noted_;
    /// Of each 64 blocks that were asked for at once, all of them `kFree`: their size.
    std::unique_ptr<std::atomic<uint16_t>[], Free> whole_;
    std::unique_ptr<size_t[], Free> large_; // the sizes of those; null where none can be
    size_t noted_max_ = 0;                  // of sizes that allocate() need not look at
    size_t block_count_ = 0;
    bool is_shared_ = false;
    Chunk region_;
    Chunk control_;
    std::optional<FreeBits> free_;
    std::atomic<size_t> touched_words_{0};
    std::mutex collecting_; // or dividing
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
