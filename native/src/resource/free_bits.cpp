#include "tightship/resource/free_bits.hpp"

#include <bit>
#include <new>
#include <thread>

namespace tightship::resource {

namespace {

constexpr size_t kNone = SIZE_MAX;
constexpr size_t kLine = 64;

size_t words_for(size_t count) {
    return (count + 63) / 64;
}

} // namespace

/// Counts of claims that have begun to clear summaries, and of those that have finished.
struct alignas(kLine) FreeBits::Control {
    std::atomic<uint64_t> begun{0};
    std::atomic<uint64_t> done{0};
};

size_t FreeBits::size_bytes(size_t count) {
    size_t words = 0;
    do {
        count = words_for(count);
        words += (count + 7) / 8 * 8;
    } while (count > 1);
    return sizeof(Control) + words * sizeof(Word);
}

FreeBits::FreeBits(void *memory, size_t count) : control_(new (memory) Control) {
    auto *next = static_cast<char *>(memory) + sizeof(Control);
    do {
        const size_t words = words_for(count);
        auto *first = reinterpret_cast<Word *>(next);
        for (size_t word = 0; word < words; ++word)
            new (first + word)
                Word(word + 1 < words || count % 64 == 0 ? ~uint64_t{0}
                                                         : (uint64_t{1} << count % 64) - 1);
        levels_.push_back({first, words});
        next += (words + 7) / 8 * 8 * sizeof(Word);
        count = words;
    } while (count > 1);
}

/// Returns the first word of `level` from `from` on that may have set bits, by the summaries.
size_t FreeBits::find(size_t level, size_t from) const {
    while (from < levels_[level].count) {
        if (level + 1 == levels_.size())
            return levels_[level].words[from].load() != 0 ? from : kNone;
        const uint64_t said = levels_[level + 1].words[from / 64].load();
        if (const uint64_t later = said & ~uint64_t{0} << from % 64; later != 0)
            return from / 64 * 64 + std::countr_zero(later);
        const size_t above = find(level + 1, from / 64 + 1);
        if (above == kNone)
            return kNone;
        from = above * 64;
    }
    return kNone;
}

uint64_t FreeBits::claim(size_t &hint, size_t limit) {
    for (;;) {
        const uint64_t done = control_->done.load();
        const uint64_t begun = control_->begun.load();
        const size_t first = hint;
        for (size_t stop = kNone, from = first;; from = 0, stop = first) {
            for (size_t word; (word = find(0, from)) < stop; from = word + 1) {
                if (const uint64_t taken = claim_from(word, limit); taken != 0) {
                    hint = word;
                    return taken;
                }
            }
            if (stop != kNone || first == 0)
                break;
        }
        if (begun == done && control_->begun.load() == begun)
            return 0;
        std::this_thread::yield();
    }
}

uint64_t FreeBits::claim_from(size_t word, size_t limit) {
    Word &bits = levels_[0].words[word];
    uint64_t before, taken;
    if (limit >= 64) {
        before = taken = bits.exchange(0);
    } else {
        before = bits.load();
        do
            taken = lowest(before, limit);
        while (taken != 0 && !bits.compare_exchange_weak(before, before & ~taken));
    }
    if (taken != 0 && taken == before)
        clear_above(word);
    return taken;
}

uint64_t FreeBits::release(size_t word, uint64_t bits) {
    const uint64_t before = levels_[0].words[word].fetch_or(bits);
    set_above(0, word);
    return before & bits;
}

/// Clears the summaries above a word that has become empty. A thread that sets one of its bits
/// meanwhile may still see the summary's bit set and leave it, so each word is read again after its
/// bit was cleared.
void FreeBits::clear_above(size_t word) {
    control_->begun.fetch_add(1);
    for (size_t level = 0, index = word; level + 1 < levels_.size(); ++level, index /= 64) {
        const uint64_t bit = uint64_t{1} << index % 64;
        const uint64_t left = levels_[level + 1].words[index / 64].fetch_and(~bit) & ~bit;
        if (levels_[level].words[index].load() != 0) {
            set_above(level, index);
            break;
        }
        if (left != 0)
            break;
    }
    control_->done.fetch_add(1);
}

void FreeBits::set_above(size_t level, size_t index) {
    for (; level + 1 < levels_.size(); ++level, index /= 64) {
        const uint64_t bit = uint64_t{1} << index % 64;
        Word &above = levels_[level + 1].words[index / 64];
        if ((above.load() & bit) == 0)
            above.fetch_or(bit);
    }
}

size_t FreeBits::set_count() const {
    size_t count = 0;
    for (size_t word = 0; word < levels_[0].count; ++word)
        count += static_cast<size_t>(std::popcount(set_of(word)));
    return count;
}

void FreeBits::settle() {
    for (size_t word = 0; word < levels_[0].count; ++word)
        if (set_of(word) != 0)
            set_above(0, word);
    control_->done.store(control_->begun.load());
}

} // namespace tightship::resource
