/// Set of small numbers, and a stack of such sets.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace tightship::search {

class Bits {
  public:
    explicit Bits(int count) : words_((count + 63) / 64, 0) {}

    void clear() { words_.assign(words_.size(), 0); }
    void insert(int i) { words_[i >> 6] |= std::uint64_t{1} << (i & 63); }
    bool has(int i) const { return words_[i >> 6] >> (i & 63) & 1; }

    template <class Visit> void for_each(Visit visit) const {
        for (std::size_t word = 0; word < words_.size(); ++word)
            for (std::uint64_t left = words_[word]; left != 0; left &= left - 1)
                visit(static_cast<int>(word) * 64 + std::countr_zero(left));
    }

    /// Pushes a copy of the set onto `stack`.
    void push_on(std::vector<std::uint64_t> &stack) const {
        stack.insert(stack.end(), words_.begin(), words_.end());
    }

    /// Adds the set on top of `stack`, which stays there.
    void add_top_of(const std::vector<std::uint64_t> &stack) {
        const std::uint64_t *top = stack.data() + stack.size() - words_.size();
        for (std::size_t word = 0; word < words_.size(); ++word)
            words_[word] |= top[word];
    }

    /// Adds the set that is `index` from the bottom of `stack`.
    void add_nth_of(const std::vector<std::uint64_t> &stack, int index) {
        const std::uint64_t *nth = stack.data() + words_.size() * index;
        for (std::size_t word = 0; word < words_.size(); ++word)
            words_[word] |= nth[word];
    }

    void pop_from(std::vector<std::uint64_t> &stack) const {
        stack.resize(stack.size() - words_.size());
    }

  private:
    std::vector<std::uint64_t> words_;
};

} // namespace tightship::search
