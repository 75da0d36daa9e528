#include "tightship/resource/slab.hpp"

#include "tightship/os/os.hpp"

#include <algorithm>

namespace tightship::resource {

namespace {

constexpr size_t kLine = 64;

/// Returns the number of blocks that fit, with their bits if these are inside.
size_t count_blocks(size_t size_bytes, size_t block_bytes, size_t alignment, bool is_inside) {
    if (!is_inside)
        return size_bytes / block_bytes;
    size_t most = size_bytes / block_bytes, least = 0;
    while (least < most) {
        const size_t count = least + (most - least + 1) / 2;
        const size_t bits = align_up(FreeBits::size_bytes(count), alignment);
        const bool fits = bits <= size_bytes && count <= (size_bytes - bits) / block_bytes;
        (fits ? least : most) = fits ? count : count - 1;
    }
    return least;
}

/// Obtains zeros for `count` elements, whose pages are touched as they are used. Throws
/// `std::bad_alloc`.
template <class Owner> void obtain(Owner &owner, size_t count) {
    using Element = typename Owner::element_type;
    owner.reset(static_cast<Element *>(std::calloc(count, sizeof(Element))));
    if (owner == nullptr)
        throw std::bad_alloc();
}

} // namespace

SlabResource::SlabResource(std::shared_ptr<MemoryResource> upstream, size_t size_bytes,
                           size_t block_bytes, std::shared_ptr<MemoryResource> control)
    : block_bytes_(block_bytes), is_shared_(upstream->is_shared()) {
    if (block_bytes == 0 || block_bytes % 8 != 0)
        throw Misuse("`block_bytes` (= " + std::to_string(block_bytes) +
                     ") must be a multiple of 8, and at least 8.");
    alignment_ = std::min(block_bytes & -block_bytes, os::page_size());
    const size_t region_alignment = std::max(alignment_, kLine);
    const bool is_inside = control == nullptr;
    block_count_ = count_blocks(size_bytes, block_bytes, region_alignment, is_inside);
    capacity_bytes_ = block_count_ * block_bytes;
    if (block_count_ == 0)
        throw Misuse("`size_bytes` (= " + std::to_string(size_bytes) + ") has no room for a block" +
                     (is_inside ? " and its bits" : "") + ": `block_bytes` is " +
                     std::to_string(block_bytes) + ".");
    inverse_ = ~uint64_t{0} / block_bytes + 1;
    region_.obtain(std::move(upstream), size_bytes, region_alignment);
    const size_t bits_bytes = FreeBits::size_bytes(block_count_);
    start_ = region_.start();
    char *bits = start_;
    if (is_inside) {
        start_ += align_up(bits_bytes, region_alignment);
    } else {
        control_.obtain(std::move(control), bits_bytes, kLine);
        bits = control_.start();
    }
    free_.emplace(bits, block_count_);
    noted_max_ = std::min(block_bytes_, kNoted);
    obtain(noted_, block_count_);
    obtain(whole_, block_count_ / 64 + 1);
    if (block_bytes_ > kNoted)
        obtain(large_, block_count_);
}

void *SlabResource::allocate(size_t size_bytes, size_t alignment) {
    if (size_bytes - 1 >= noted_max_ || alignment > alignment_) [[unlikely]]
        return allocate_slowly(size_bytes, alignment);
    return from_cache(size_bytes, [&] { return from_bitmap(size_bytes); });
}

Freed SlabResource::deallocate(void *pointer, size_t size_bytes, size_t alignment) {
    if (to_cache(pointer, size_bytes, alignment)) [[likely]]
        return Freed::done;
    return deallocate_slowly(pointer, size_bytes, alignment);
}

/// Serves a size of 0, or one that is kept apart; refuses sizes that the slab does not serve.
void *SlabResource::allocate_slowly(size_t size_bytes, size_t alignment) {
    if (!serves(size_bytes, alignment))
        return nullptr;
    const size_t noted = noted_of(size_bytes);
    void *given = from_cache(noted, [&] { return from_bitmap(noted); });
    if (given != nullptr && noted == kLarge)
        large_[quotient(static_cast<char *>(given) - start_)] = size_bytes;
    return given;
}

/// Moves a word of the bitmap into the thread cache, or takes one block if that is closed.
void *SlabResource::from_bitmap(size_t noted) {
    ThreadCache *cache = caches_.own();
    const bool is_open = cache != nullptr && cache->is_closed.load(std::memory_order_relaxed) == 0;
    size_t word = first_word();
    const uint64_t bits = claim(word, is_open ? 64 : 1);
    if (bits == 0)
        return nullptr;
    if (is_open)
        keep(cache, word, bits & (bits - 1));
    mark(word * 64 + lowest(bits), noted);
    return block(word, bits);
}

/// Returns the word at which the calling thread starts to search: threads start in different cache
/// lines of the bitmap.
size_t SlabResource::first_word() const {
    return thread_slot() * size_t{8} % free_->word_count();
}

/// Claims free blocks of one word; reclaims the blocks in thread caches if the bitmap is used up.
uint64_t SlabResource::claim(size_t &word, size_t limit) {
    for (;;) {
        const uint64_t bits = free_->claim(word, limit);
        if (bits != 0) {
            size_t touched = touched_words_.load(std::memory_order_relaxed);
            while (touched <= word && !touched_words_.compare_exchange_weak(touched, word + 1)) {
            }
            return bits;
        }
        if (!collect())
            return 0;
    }
}

bool SlabResource::collect() {
    const std::lock_guard lock(collecting_);
    return caches_.close_each([this](ThreadCache &cache) { empty_into_bitmap(cache); });
}

/// Empties a stack; neighbours freed one after the other go to the bitmap by one atomic operation.
void SlabResource::empty_stack(ThreadCache &cache) {
    size_t word = 0;
    uint64_t bits = 0;
    for (uint32_t place = 0; place < cache.get_depth(); ++place) {
        size_t index = 0;
        locate(cache.at(place), index);
        if (index / 64 != word && bits != 0) {
            free_->release(word, bits);
            bits = 0;
        }
        word = index / 64;
        bits |= bit(index);
    }
    if (bits != 0)
        free_->release(word, bits);
    cache.set_depth(0);
}

void SlabResource::empty_into_bitmap(ThreadCache &cache) {
    empty_stack(cache);
    if (const uint64_t bits = cache.get_bits(); bits != 0)
        free_->release(cache.get_word(), bits);
    cache.set_bits(0);
}

/// Handles the other cases: a full stack, a closed thread cache, a size that is kept apart, a block
/// of another process, or a pointer that is not a live block.
Freed SlabResource::deallocate_slowly(void *pointer, size_t size_bytes, size_t alignment) {
    size_t index;
    if (const Freed found = locate(pointer, index); found != Freed::done)
        return found;
    divide(index / 64);
    if (const Freed fault = check(pointer, index, size_bytes, alignment); fault != Freed::done)
        return fault;
    mark(index, kFree);
    ThreadCache *cache = caches_.own();
    if (cache == nullptr || !cache->enter())
        return free_->release(index / 64, bit(index)) == 0 ? Freed::done : Freed::already_free;
    if (cache->get_depth() == ThreadCache::kDepth)
        empty_stack(*cache);
    cache->push(cache->get_depth(), static_cast<char *>(pointer));
    cache->leave();
    return Freed::done;
}

/// Returns why the block at `index` cannot be freed with that size and alignment; `done` if it can.
Freed SlabResource::check(const void *pointer, size_t index, size_t size_bytes, size_t alignment) {
    const size_t size = asked(index);
    if (size == 0 && (!is_shared_ || is_free(pointer, index)))
        return Freed::already_free;
    if (is_shared_ ? size_bytes > block_bytes_ : std::max<size_t>(size_bytes, 1) != size)
        return Freed::wrong_size;
    return is_aligned(pointer, alignment) ? Freed::done : Freed::wrong_alignment;
}

size_t SlabResource::size_of(const void *pointer) const {
    size_t index;
    return locate(pointer, index) == Freed::done ? asked(index) : 0;
}

/// Returns whether the bitmap or the calling thread's cache has a block.
bool SlabResource::is_free(const void *pointer, size_t index) {
    const ThreadCache *cache = caches_.own();
    uint64_t free = free_->set_of(index / 64);
    if (cache != nullptr) {
        free |= cache->bits_of(index / 64);
        for (uint32_t place = 0; place < cache->get_depth(); ++place)
            if (cache->at(place) == pointer)
                return true;
    }
    return (free & bit(index)) != 0;
}

Range SlabResource::range_of(const void *pointer) const {
    if (!contains(pointer))
        return {};
    const auto start = reinterpret_cast<uintptr_t>(start_);
    const size_t offset = reinterpret_cast<uintptr_t>(pointer) - start;
    return {start + offset / block_bytes_ * block_bytes_, block_bytes_};
}

Statistics SlabResource::statistics() const {
    size_t free = free_->set_count();
    for (uint32_t index = 0; index < caches_.count(); ++index)
        free += caches_[index].count();
    const size_t live = block_count_ - std::min(free, block_count_);
    const size_t touched = touched_words_.load(std::memory_order_relaxed) * 64;
    return {live * block_bytes_, live, capacity_bytes_,
            std::min(touched, block_count_) * block_bytes_};
}

std::string SlabResource::refusal(size_t size_bytes, size_t alignment) const {
    if (size_bytes > block_bytes_)
        return "`block_bytes` is " + std::to_string(block_bytes_) + ".";
    if (alignment > alignment_)
        return "blocks of " + std::to_string(block_bytes_) + " bytes are aligned to " +
               std::to_string(alignment_) + ".";
    return "all " + std::to_string(block_count_) + " blocks of " + std::to_string(block_bytes_) +
           " bytes are in use. Give the slab a larger region.";
}

void SlabResource::before_fork() {
    collecting_.lock();
    caches_.close(true);
}

/// Leaves the thread caches' blocks and the bitmap of shared memory to the parent. A private copy
/// of the bitmap is completed: the child has no other threads that would finish what they had begun
/// in it.
void SlabResource::after_fork(bool is_child) {
    if (is_child) {
        os::register_thread_barrier();
        if (is_shared_)
            caches_.forget();
        else
            free_->settle();
    }
    caches_.open();
    collecting_.unlock();
}

} // namespace tightship::resource
