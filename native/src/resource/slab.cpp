#include "tightship/resource/slab.hpp"

#include "tightship/os.hpp"

#include <algorithm>

namespace tightship::resource {

namespace {

constexpr size_t kLine = 64;

/// Blocks that fit, with their bits before them where these are inside.
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
    words_ = free_->words();
}

void *SlabResource::allocate(size_t size_bytes, size_t alignment) {
    if (!serves(size_bytes, alignment)) [[unlikely]]
        return nullptr;
    Cell *cell = cells_.known();
    if (cell != nullptr && cell->enter()) [[likely]] {
        if (char *hot = cell->get_hot(); hot != nullptr) {
            cell->set_hot(nullptr);
            cell->leave();
            return hot;
        }
        if (const uint32_t filled = cell->get_filled(); filled != 0) {
            const auto slot = static_cast<size_t>(std::countr_zero(filled));
            char *given = block(cell->get_word(slot), cell->take(slot));
            cell->leave();
            return given;
        }
        cell->leave();
    }
    return allocate_slowly();
}

void *SlabResource::allocate_slowly() {
    Cell *cell = cells_.own();
    size_t word = first_word();
    if (cell == nullptr || cell->is_closed.load(std::memory_order_relaxed) != 0) {
        const uint64_t bit = claim(word, 1);
        return bit == 0 ? nullptr : block(word, bit);
    }
    const uint64_t bits = claim(word, 64);
    if (bits == 0)
        return nullptr;
    keep(cell, word, bits & (bits - 1));
    return block(word, bits);
}

/// Where the calling thread looks for free blocks: each in a line of the bitmap of its own.
size_t SlabResource::first_word() const {
    return thread_slot() * size_t{8} % free_->word_count();
}

/// Free blocks of one word, which the bitmap no longer has; calls back what cells hold if it must.
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
    return cells_.close_each([this](Cell &cell) { empty_into_bitmap(cell); });
}

void SlabResource::empty_into_bitmap(Cell &cell) {
    for (size_t slot = 0; slot < Cell::kSlots; ++slot) {
        if (cell.get_bits(slot) != 0)
            free_->release(cell.get_word(slot), cell.get_bits(slot));
        cell.set_bits(slot, 0);
    }
    if (size_t hot; cell.get_hot() != nullptr && locate(cell.get_hot(), hot) == Freed::done)
        free_->release(hot / 64, bit(hot));
    cell.set_hot(nullptr);
}

Freed SlabResource::deallocate(void *pointer, size_t size_bytes, size_t) {
    size_t index;
    if (const Freed found = locate(pointer, index); found != Freed::done) [[unlikely]]
        return found;
    if (size_bytes > block_bytes_) [[unlikely]]
        return Freed::wrong_size;
    Cell *cell = cells_.known();
    if (cell != nullptr && cell->enter()) [[likely]] {
        const size_t word = index / 64, slot = word % Cell::kSlots;
        const bool is_own = cell->get_word(slot) == word;
        uint64_t free = words_[word].load(std::memory_order_relaxed);
        if (is_own)
            free |= cell->get_bits(slot);
        if ((free >> index % 64 & 1) == 0) [[likely]] {
            char *const hot = cell->get_hot();
            if (hot == nullptr) {
                cell->set_hot(static_cast<char *>(pointer));
                cell->leave();
                return Freed::done;
            }
            if (is_own && hot != pointer) {
                cell->add(slot, bit(index));
                cell->leave();
                return Freed::done;
            }
        }
        cell->leave();
    }
    return deallocate_slowly(pointer, index);
}

/// Where the block is of a word that the cell has none of, or free already, or the cell closed.
Freed SlabResource::deallocate_slowly(const void *pointer, size_t index) {
    Cell *cell = cells_.own();
    if (cell != nullptr && cell->get_hot() == pointer)
        return Freed::already_free;
    return release_run(index / 64, bit(index));
}

size_t SlabResource::spread(void **blocks, size_t word, uint64_t bits) const {
    size_t count = 0;
    if (bits == ~uint64_t{0}) {
        char *each = start_ + word * 64 * block_bytes_;
        for (; count < 64; ++count, each += block_bytes_)
            blocks[count] = each;
    } else {
        for (; bits != 0; bits &= bits - 1)
            blocks[count++] = block(word, bits);
    }
    return count;
}

size_t SlabResource::allocate_many(void **blocks, size_t count, size_t size_bytes,
                                   size_t alignment) {
    if (!serves(size_bytes, alignment))
        return 0;
    size_t given = 0;
    Cell *cell = cells_.own();
    if (cell != nullptr && cell->enter()) {
        if (char *hot = cell->get_hot(); hot != nullptr && count > 0) {
            cell->set_hot(nullptr);
            blocks[given++] = hot;
        }
        while (given < count && cell->get_filled() != 0) {
            const auto slot = static_cast<size_t>(std::countr_zero(cell->get_filled()));
            const uint64_t bits = cell->get_bits(slot);
            const uint64_t taken = FreeBits::lowest(bits, count - given);
            cell->set_bits(slot, bits & ~taken);
            given += spread(blocks + given, cell->get_word(slot), taken);
        }
        cell->leave();
    }
    for (size_t word = given < count ? first_word() : 0; given < count;) {
        const uint64_t bits = claim(word, 64);
        if (bits == 0)
            break;
        const uint64_t taken = FreeBits::lowest(bits, count - given);
        given += spread(blocks + given, word, taken);
        keep(cell, word, bits & ~taken);
    }
    return given;
}

/// Puts free blocks of a word into the cell; those of another word that were in its slot go to the
/// bitmap, as all do where the cell is closed.
void SlabResource::keep(Cell *cell, size_t word, uint64_t bits) {
    if (cell != nullptr && cell->enter()) {
        const size_t slot = word % Cell::kSlots;
        const size_t before_word = cell->get_word(slot);
        const uint64_t before = cell->get_bits(slot);
        cell->set(slot, word, before_word == word ? before | bits : bits);
        cell->leave();
        if (before_word == word)
            return;
        word = before_word;
        bits = before;
    }
    if (bits != 0)
        free_->release(word, bits);
}

/// Takes back `blocks[0]`, which is at `index`, with those that follow it and are of the same word,
/// no two the same; `count` becomes how many those are. Neighbours in order need no division.
Freed SlabResource::release_together(void *const *blocks, size_t &count, size_t index) {
    const size_t word = index / 64, stop = std::min(word * 64 + 64, block_count_);
    const size_t in_order = std::min(count, stop - index);
    size_t taken = 1;
    for (const char *each = static_cast<char *>(blocks[0]);
         taken < in_order && blocks[taken] == each + block_bytes_; ++taken)
        each += block_bytes_;
    uint64_t bits = (~uint64_t{0} >> (64 - taken)) << index % 64;
    for (; taken < count && locate(blocks[taken], index) == Freed::done; ++taken) {
        if (index / 64 != word || (bits & bit(index)) != 0)
            break;
        bits |= bit(index);
    }
    count = taken;
    return release_run(word, bits);
}

Freed SlabResource::deallocate_many(void *const *blocks, size_t count, size_t size_bytes, size_t) {
    if (size_bytes > block_bytes_)
        return Freed::wrong_size;
    Freed fault = Freed::done;
    const auto note = [&fault](Freed freed) {
        if (fault == Freed::done)
            fault = freed;
    };
    for (size_t each = 0; each < count;) {
        size_t first, together = count - each;
        const Freed found = locate(blocks[each], first);
        if (found == Freed::done)
            note(release_together(blocks + each, together, first));
        else
            note(found);
        each += found == Freed::done ? together : 1;
    }
    return fault;
}

/// Takes blocks of one word back, but those that are free already.
Freed SlabResource::release_run(size_t word, uint64_t bits) {
    Cell *cell = cells_.own();
    uint64_t before = free_->set_of(word);
    if (cell != nullptr) {
        before |= cell->bits_of(word);
        if (size_t hot; cell->get_hot() != nullptr && locate(cell->get_hot(), hot) == Freed::done &&
                        hot / 64 == word)
            before |= bit(hot);
    }
    keep(cell, word, bits & ~before);
    return (before & bits) == 0 ? Freed::done : Freed::already_free;
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
    for (uint32_t index = 0; index < cells_.count(); ++index)
        free += cells_[index].count();
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
    cells_.close(true);
}

/// A child of shared memory leaves the parent what is in the cells, and the bitmap as it is; a
/// child with a copy has no other threads that would finish what they had begun in it.
void SlabResource::after_fork(bool is_child) {
    if (is_child) {
        os::register_thread_barrier();
        if (is_shared_)
            cells_.forget();
        else
            free_->settle();
    }
    cells_.open();
    collecting_.unlock();
}

} // namespace tightship::resource
