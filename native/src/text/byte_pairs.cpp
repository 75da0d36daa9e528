#include "tightship/text/byte_pairs.hpp"

#include <bit>
#include <functional>
#include <queue>
#include <stdexcept>

namespace tightship::text {

namespace {

/// Letter or joined letters of a word that is being encoded; `token` is `TextNumbers::kNone` once
/// they are part of those before.
struct Part {
    int32_t token;
    int32_t before, after; // places of the neighbours; -1 for none
};

/// Pair of neighbours that may be joined.
struct Joining {
    uint32_t rank;
    int32_t place; // of the first of both
    int32_t left, right;

    /// Returns whether another one is joined first, as `std::priority_queue` asks.
    bool operator<(const Joining &other) const {
        return rank != other.rank ? rank > other.rank : place > other.place;
    }
};

/// Slots of an open table for so many entries: at least half of them stay free.
size_t slots_for(size_t count) {
    return std::bit_ceil(2 * count + 1);
}

/// Returns the bytes of the letter that a text begins with, by its first byte; at most its size.
size_t letter_bytes(std::string_view text) {
    const auto first = static_cast<unsigned char>(text.front());
    const size_t size = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return size < text.size() ? size : text.size();
}

uint64_t pair_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

} // namespace

void TextNumbers::take(std::vector<std::string_view> texts) {
    size_t size = 0;
    for (const auto text : texts)
        size += text.size();
    if (size > UINT32_MAX || texts.size() > INT32_MAX / 4)
        throw std::invalid_argument("the texts have " + std::to_string(size) + " bytes");
    content_.reserve(size);
    ends_.assign(1, 0);
    ends_.reserve(texts.size() + 1);
    slots_.assign(slots_for(texts.size()), kNone);
    for (const auto text : texts) {
        const auto number = static_cast<int32_t>(ends_.size() - 1);
        content_ += text;
        ends_.push_back(static_cast<uint32_t>(content_.size()));
        slots_[slot_of(text)] = number;
    }
}

std::string_view TextNumbers::at(int32_t number) const {
    const auto place = static_cast<size_t>(number);
    return std::string_view(content_).substr(ends_[place], ends_[place + 1] - ends_[place]);
}

size_t TextNumbers::slot_of(std::string_view text) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = std::hash<std::string_view>{}(text)&mask;
    while (slots_[slot] != kNone && at(slots_[slot]) != text)
        slot = (slot + 1) & mask;
    return slot;
}

int32_t TextNumbers::find(std::string_view text) const {
    return slots_[slot_of(text)];
}

BytePairs::BytePairs(std::vector<std::string_view> tokens, std::span<const std::string_view> merges,
                     bool ignores_merges)
    : merges_(slots_for(merges.size()), Merge{kFree, 0, 0}), ignores_merges_(ignores_merges) {
    numbers_.take(std::move(tokens));
    uint32_t rank = 0;
    for (const auto merge : merges)
        add(merge, rank++);
}

void BytePairs::add(std::string_view merge, uint32_t rank) {
    // The first part may itself be a space.
    const size_t space = merge.empty() ? std::string_view::npos : merge.find(' ', 1);
    if (space == std::string_view::npos)
        throw std::invalid_argument("`" + std::string(merge) + "` is not a pair");
    const auto left = merge.substr(0, space), right = merge.substr(space + 1);
    const std::string both = std::string(left) + std::string(right);
    int32_t known[3] = {};
    const std::string_view parts[3] = {left, right, both};
    for (size_t i = 0; i < 3; ++i) {
        known[i] = numbers_.find(parts[i]);
        if (known[i] == TextNumbers::kNone)
            throw std::invalid_argument("`" + std::string(parts[i]) + "` of the merge `" +
                                        std::string(merge) + "` is not a token");
    }
    const uint64_t pair = pair_of(known[0], known[1]);
    merges_[slot_of(pair)] = {pair, rank, known[2]};
}

size_t BytePairs::slot_of(uint64_t pair) const {
    const size_t mask = merges_.size() - 1;
    size_t slot = (pair * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (merges_[slot].pair != kFree && merges_[slot].pair != pair)
        slot = (slot + 1) & mask;
    return slot;
}

const BytePairs::Merge *BytePairs::find(int32_t left, int32_t right) const {
    const Merge &found = merges_[slot_of(pair_of(left, right))];
    return found.pair == kFree ? nullptr : &found;
}

void BytePairs::encode(std::string_view word, std::vector<int32_t> &found) const {
    if (ignores_merges_) {
        const int32_t whole = numbers_.find(word);
        if (whole != TextNumbers::kNone) {
            found.push_back(whole);
            return;
        }
    }
    std::vector<Part> parts;
    while (!word.empty()) {
        const size_t size = letter_bytes(word);
        const int32_t token = numbers_.find(word.substr(0, size));
        word.remove_prefix(size);
        if (token == TextNumbers::kNone)
            continue;
        const auto place = static_cast<int32_t>(parts.size());
        parts.push_back({token, place - 1, place + 1});
    }
    if (parts.empty())
        return;
    parts.back().after = -1;
    std::priority_queue<Joining> waiting;
    const auto look = [&](int32_t place) {
        if (place < 0 || parts[static_cast<size_t>(place)].after < 0)
            return;
        const Part &left = parts[static_cast<size_t>(place)];
        const Part &right = parts[static_cast<size_t>(left.after)];
        if (const Merge *merge = find(left.token, right.token))
            waiting.push({merge->rank, place, left.token, right.token});
    };
    for (size_t place = 0; place + 1 < parts.size(); ++place)
        look(static_cast<int32_t>(place));
    while (!waiting.empty()) {
        const Joining next = waiting.top();
        waiting.pop();
        Part &left = parts[static_cast<size_t>(next.place)];
        if (left.token != next.left || left.after < 0)
            continue;
        Part &right = parts[static_cast<size_t>(left.after)];
        if (right.token != next.right)
            continue;
        left.token = find(next.left, next.right)->made;
        left.after = right.after;
        right.token = TextNumbers::kNone;
        if (left.after >= 0)
            parts[static_cast<size_t>(left.after)].before = next.place;
        look(left.before);
        look(next.place);
    }
    for (const Part &part : parts)
        if (part.token != TextNumbers::kNone)
            found.push_back(part.token);
}

} // namespace tightship::text
