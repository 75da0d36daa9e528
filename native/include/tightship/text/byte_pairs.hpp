/// Tokens of byte-pair vocabularies: letters are joined in the order of a list of merges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tightship::text {

/// Numbers of texts, found by their bytes.
class TextNumbers {
  public:
    /// Number of a text that is not among them.
    static constexpr int32_t kNone = -1;

    /// Takes texts whose numbers are their places; of equal ones the last counts.
    void take(std::vector<std::string_view> texts);

    /// Returns the number of a text, or `kNone`.
    int32_t find(std::string_view text) const;

  private:
    std::string content_;
    std::vector<uint32_t> ends_; // of each text within the content, after a zero
    std::vector<int32_t> slots_; // open addressing; a power of two

    std::string_view at(int32_t number) const;
    size_t slot_of(std::string_view text) const;
};

/// Encoder of words by merges.
class BytePairs {
  public:
    /// Takes the tokens, and pairs with a space between their parts, the first to be joined first.
    /// Throws `std::invalid_argument` with the reason if a merge does not fit the tokens.
    BytePairs(std::vector<std::string_view> tokens, std::span<const std::string_view> merges,
              bool ignores_merges);

    /// Appends the tokens of a word. Letters without a token are left out.
    void encode(std::string_view word, std::vector<int32_t> &found) const;

  private:
    struct Merge {
        uint64_t pair; // both numbers; `kFree` where there is none
        uint32_t rank;
        int32_t made;
    };
    static constexpr uint64_t kFree = ~uint64_t{0};

    TextNumbers numbers_;
    std::vector<Merge> merges_; // open addressing; a power of two
    bool ignores_merges_;

    void add(std::string_view merge, uint32_t rank);
    const Merge *find(int32_t left, int32_t right) const;
    size_t slot_of(uint64_t pair) const;
};

} // namespace tightship::text
