#include "tightship/resource/slab.hpp"

#include <algorithm>

namespace tightship::resource {

/// Marks 64 blocks at once.
void SlabResource::mark_word(size_t word, size_t noted) {
    std::fill_n(&noted_[word * 64], 64, static_cast<uint16_t>(noted));
}

/// Returns whether 64 blocks are marked `noted` together.
bool SlabResource::is_word(size_t word, size_t noted) const {
    const uint16_t *marks = &noted_[word * 64];
    uint16_t difference = 0;
    for (size_t place = 0; place < 64; ++place)
        difference |= marks[place] ^ static_cast<uint16_t>(noted);
    return difference == 0;
}

/// Marks 64 blocks that were requested together one by one, because one of them is freed alone.
void SlabResource::divide(size_t word) {
    if (whole_[word].load(std::memory_order_acquire) == kFree)
        return;
    const std::lock_guard lock(collecting_);
    uint16_t noted = whole_[word].load(std::memory_order_relaxed);
    if (noted == kFree || !whole_[word].compare_exchange_strong(noted, kDividing))
        return;
    for (size_t place = 0; place < 64; ++place)
        mark(word * 64 + place, noted);
    whole_[word].store(kFree, std::memory_order_release);
}

/// Marks 64 blocks free; returns false, and changes nothing, if not all of them are marked `noted`.
bool SlabResource::unmark_word(size_t word, size_t noted) {
    auto whole = static_cast<uint16_t>(noted);
    if (whole_[word].load(std::memory_order_relaxed) == whole &&
        whole_[word].compare_exchange_strong(whole, kFree))
        return true;
    const bool is_one_by_one = is_word(word, noted);
    if (is_one_by_one)
        mark_word(word, kFree);
    return is_one_by_one;
}

size_t SlabResource::spread(void **blocks, size_t word, uint64_t bits, size_t noted) {
    size_t count = 0;
    if (bits == ~uint64_t{0}) {
        if (is_shared_) // other processes free single blocks
            mark_word(word, noted);
        else
            whole_[word].store(static_cast<uint16_t>(noted), std::memory_order_relaxed);
        char *each = start_ + word * 64 * block_bytes_;
        for (; count < 64; ++count, each += block_bytes_)
            blocks[count] = each;
    } else {
        for (; bits != 0; bits &= bits - 1) {
            mark(word * 64 + lowest(bits), noted);
            blocks[count++] = block(word, bits);
        }
    }
    return count;
}

size_t SlabResource::allocate_many(void **blocks, size_t count, size_t size_bytes,
                                   size_t alignment) {
    if (!serves(size_bytes, alignment))
        return 0;
    if (size_bytes > kNoted)
        return MemoryResource::allocate_many(blocks, count, size_bytes, alignment);
    const size_t noted = noted_of(size_bytes);
    size_t given = 0;
    ThreadCache *cache = caches_.own();
    if (cache != nullptr && cache->enter()) {
        while (given < count && cache->get_depth() != 0) {
            char *each = cache->pop(cache->get_depth());
            mark(quotient(each - start_), noted);
            blocks[given++] = each;
        }
        const uint64_t bits = cache->get_bits();
        const uint64_t taken = FreeBits::lowest(bits, count - given);
        cache->set_bits(bits & ~taken);
        given += spread(blocks + given, cache->get_word(), taken, noted);
        cache->leave();
    }
    for (size_t word = given < count ? first_word() : 0; given < count;) {
        const uint64_t bits = claim(word, 64);
        if (bits == 0)
            break;
        const uint64_t taken = FreeBits::lowest(bits, count - given);
        given += spread(blocks + given, word, taken, noted);
        keep(cache, word, bits & ~taken);
    }
    return given;
}

/// Puts free blocks of a word into the thread cache; the cache's blocks of another word go to the
/// bitmap, as all blocks do if the cache is closed.
void SlabResource::keep(ThreadCache *cache, size_t word, uint64_t bits) {
    if (cache != nullptr && cache->enter()) {
        const size_t before_word = cache->get_word();
        const uint64_t before = cache->get_bits();
        cache->set(word, before_word == word ? before | bits : bits);
        cache->leave();
        if (before_word == word)
            return;
        word = before_word;
        bits = before;
    }
    if (bits != 0)
        free_->release(word, bits);
}

/// Frees `blocks[0]`, which is at `index`, with those that follow it and lie in the same word, no
/// two the same; sets `count` to their number. Neighbours in order need no division.
FreedMany SlabResource::release_together(void *const *blocks, size_t &count, size_t index,
                                         size_t size_bytes) {
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
    return release_run(word, bits, size_bytes);
}

FreedMany SlabResource::deallocate_many(void *const *blocks, size_t count, size_t size_bytes,
                                        size_t alignment) {
    if (size_bytes > kNoted || alignment > alignment_)
        return MemoryResource::deallocate_many(blocks, count, size_bytes, alignment);
    FreedMany freed;
    for (size_t each = 0; each < count;) {
        size_t first, together = count - each;
        const Freed found = locate(blocks[each], first);
        if (found == Freed::done)
            freed.note(release_together(blocks + each, together, first, size_bytes));
        else
            freed.note(found, blocks[each]);
        each += found == Freed::done ? together : 1;
    }
    return freed;
}

/// Frees the blocks of one word that have that size. REQUIRES: all of them are at a multiple of the
/// alignment, and `size_bytes` is `kNoted` at most.
FreedMany SlabResource::release_run(size_t word, uint64_t bits, size_t size_bytes) {
    FreedMany freed;
    uint64_t given = bits;
    if (bits != ~uint64_t{0} || !unmark_word(word, noted_of(size_bytes))) {
        divide(word);
        for (uint64_t rest = bits; rest != 0; rest &= rest - 1) {
            const size_t index = word * 64 + lowest(rest);
            const void *each = block(word, rest);
            const Freed fault = check(each, index, size_bytes, 1);
            freed.note(fault, each);
            if (fault == Freed::done)
                mark(index, kFree);
            else
                given &= ~(rest & -rest);
        }
    }
    if (given != 0)
        keep(caches_.own(), word, given);
    return freed;
}

} // namespace tightship::resource
