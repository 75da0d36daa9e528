/// Blocks of one size, allocated from thread caches.
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

/// Cuts one region of `upstream` into blocks of `block_bytes`, with a bit for each.
///
///     region  | bits and their summaries | block 0 | block 1 | ...
///               or apart, in a block of `control`
///
/// A thread claims the free blocks of a whole word, 64 at most, into its thread cache, by one
/// atomic operation, and allocates from there. Blocks that it frees wait on a stack in its thread
/// cache, last in, first out, and go to the bitmap when the stack is full. When the bitmap is used
/// up, the blocks in all thread caches are reclaimed: none is out of reach.
///
/// Equation, while no call is in flight:
///
///     blocks = live + bits set in the bitmap + bits in thread caches + blocks on their stacks
///
/// Two bytes for each block, in private memory of the process, record its requested size while it
/// is live, so that a block freed twice, or with another size, is rejected. For 64 blocks requested
/// at once, two bytes for all of them suffice until one is freed alone. Shared memory has no record
/// of what other processes did: there any size that fits is accepted.
class SlabResource final : public MemoryResource, private Forkable {
  public:
    /// Obtains `size_bytes` from `upstream`; if `control` is null, the bits are inside the region.
    /// Throws `Refused`, `Misuse`.
    SlabResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes, size_t block_bytes,
                 std::shared_ptr<MemoryResource> control = nullptr);

    void *allocate(size_t size_bytes, size_t alignment = kDefaultAlignment) override;
    /// Rejects a block that is free already; in shared memory, one that this process freed.
    Freed deallocate(void *pointer, size_t size_bytes,
                     size_t alignment = kDefaultAlignment) override;
    size_t allocate_many(void **blocks, size_t count, size_t size_bytes,
                         size_t alignment = kDefaultAlignment) override;
    FreedMany deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                              size_t alignment = kDefaultAlignment) override;
    /// Returns the range of one block.
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

    /// Largest size recorded in a note; larger sizes are kept apart.
    static constexpr size_t kNoted = 0xFFFE;

    /// Returns a block of the calling thread's cache, marked with `noted`, the requested size; if
    /// the cache has none, the result of `otherwise()`. REQUIRES: the slab serves the request.
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
    /// Puts a block into the calling thread's cache; returns false, and changes nothing, if the
    /// cache is full, or no live block of this size, at most `kNoted` bytes, is there.
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
    /// Returns the largest power of two that every block is at a multiple of.
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
    /// Note of a block. Access is relaxed, because a thread that frees a block may read another's
    /// note while that thread divides a word's common note.
    std::atomic_ref<uint16_t> note_of(size_t index) const {
        return std::atomic_ref<uint16_t>(noted_[index]);
    }
    size_t note(size_t index) const { return note_of(index).load(std::memory_order_relaxed); }
    void mark(size_t index, size_t noted) {
        note_of(index).store(static_cast<uint16_t>(noted), std::memory_order_relaxed);
    }
    /// Returns the note for a size.
    static size_t noted_of(size_t size_bytes) {
        return size_bytes > kNoted ? kLarge : std::max<size_t>(size_bytes, 1);
    }
    /// Returns the requested size of a block; 0 if this process did not request it.
    size_t asked(size_t index) const {
        const size_t noted = note(index);
        if (noted == kLarge)
            return large_[index];
        if (noted != kFree)
            return noted;
        const size_t whole = whole_[index / 64].load(std::memory_order_acquire);
        return whole != kDividing ? whole : note(index);
    }
    /// Returns the offset in blocks, if it is a multiple of the block size.
    size_t quotient(size_t offset) const {
        return static_cast<size_t>(static_cast<unsigned __int128>(offset) * inverse_ >> 64);
    }
    /// Finds the index of the block that begins at `pointer`; returns `done`, or the fault.
    Freed locate(const void *pointer, size_t &index) const {
        const size_t offset = static_cast<const char *>(pointer) - start_;
        if (offset >= capacity_bytes_) [[unlikely]]
            return Freed::foreign;
        index = quotient(offset);
        return index * block_bytes_ == offset ? Freed::done : Freed::not_a_block;
    }
    static uint64_t bit(size_t index) { return uint64_t{1} << index % 64; }
    /// Writes the addresses of the word's `bits` to `blocks`; returns their number.
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

    // Members read by every call lie together, in as few cache lines as possible.
    char *start_ = nullptr; // of block 0
    size_t capacity_bytes_ = 0;
    size_t block_bytes_;
    size_t alignment_ = 1;
    uint64_t inverse_ = 0; // 2**64 / block_bytes, rounded up
    ThreadCaches caches_;
    /// Note of each block: `kFree`, its size, or `kLarge`; written by the thread that has the
    /// block.
    std::unique_ptr<uint16_t[], Free> noted_;
    /// Common size of each 64 blocks that were requested at once, while all their notes are
    /// `kFree`.
    std::unique_ptr<std::atomic<uint16_t>[], Free> whole_;
    std::unique_ptr<size_t[], Free> large_; // sizes of `kLarge` blocks; null if none are that large
    size_t noted_max_ = 0;                  // largest size that allocate() notes itself
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
