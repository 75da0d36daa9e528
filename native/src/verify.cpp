#include "tightship/verify.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace tightship::verify {
namespace {

using Column = std::span<const std::int64_t>;

constexpr std::size_t kNone = SIZE_MAX;

/// Set of ranks in [0, count): one bit each, and one bit above for each 64 that hold any.
class Ranks {
  public:
    explicit Ranks(std::size_t count) {
        do {
            count = count / 64 + 1;
            levels_.emplace_back(count, 0);
        } while (count > 1);
    }

    void insert(std::size_t rank) {
        for (std::vector<std::uint64_t> &level : levels_) {
            level[rank / 64] |= bit(rank);
            rank /= 64;
        }
    }

    void erase(std::size_t rank) {
        for (std::vector<std::uint64_t> &level : levels_) {
            level[rank / 64] &= ~bit(rank);
            if (level[rank / 64] != 0)
                return;
            rank /= 64;
        }
    }

    /// Returns the largest rank below `rank`; kNone if there is none.
    std::size_t below(std::size_t rank) const {
        for (std::size_t level = 0; level < levels_.size(); ++level, rank /= 64) {
            const std::uint64_t rest = levels_[level][rank / 64] & (bit(rank) - 1);
            if (rest == 0)
                continue;
            std::size_t found = rank / 64 * 64 + 63 - std::countl_zero(rest);
            while (level-- > 0)
                found = found * 64 + 63 - std::countl_zero(levels_[level][found]);
            return found;
        }
        return kNone;
    }

    /// Returns the smallest rank above `rank`; kNone if there is none.
    std::size_t above(std::size_t rank) const {
        for (std::size_t level = 0; level < levels_.size(); ++level, rank /= 64) {
            const std::uint64_t rest = levels_[level][rank / 64] & ~(bit(rank) | (bit(rank) - 1));
            if (rest == 0)
                continue;
            std::size_t found = rank / 64 * 64 + std::countr_zero(rest);
            while (level-- > 0)
                found = found * 64 + std::countr_zero(levels_[level][found]);
            return found;
        }
        return kNone;
    }

  private:
    static std::uint64_t bit(std::size_t rank) { return std::uint64_t{1} << rank % 64; }

    std::vector<std::vector<std::uint64_t>> levels_;
};

/// Returns rows with a size above 0, by rising key; equal keys by row.
std::vector<std::uint32_t> rising(Column key, Column size) {
    std::vector<std::pair<std::int64_t, std::uint32_t>> pairs;
    pairs.reserve(key.size());
    for (std::size_t row = 0; row < key.size(); ++row)
        if (size[row] > 0)
            pairs.emplace_back(key[row], static_cast<std::uint32_t>(row));
    std::sort(pairs.begin(), pairs.end());
    std::vector<std::uint32_t> rows(pairs.size());
    std::transform(pairs.begin(), pairs.end(), rows.begin(),
                   [](auto &pair) { return pair.second; });
    return rows;
}

} // namespace

std::optional<std::pair<std::size_t, std::size_t>> first_overlap(const Rectangles &rectangles) {
    const auto &[size, start, stop, offset] = rectangles;
    const std::vector<std::uint32_t> by_offset = rising(offset, size);
    std::vector<std::uint32_t> rank_of(size.size());
    for (std::size_t rank = 0; rank < by_offset.size(); ++rank)
        rank_of[by_offset[rank]] = static_cast<std::uint32_t>(rank);
    const std::vector<std::uint32_t> starting = rising(start, size);
    const std::vector<std::uint32_t> stopping = rising(stop, size);
    // Live rectangles are disjoint as long as each newcomer is disjoint from its neighbours.
    Ranks live(by_offset.size());
    auto next = stopping.begin();
    for (const std::uint32_t row : starting) {
        for (; stop[*next] <= start[row]; ++next)
            live.erase(rank_of[*next]);
        const std::size_t rank = rank_of[row];
        if (const std::size_t under = live.below(rank); under != kNone) {
            const std::size_t other = by_offset[under];
            if (offset[other] + size[other] > offset[row])
                return std::pair<std::size_t, std::size_t>{other, row};
        }
        if (const std::size_t over = live.above(rank); over != kNone) {
            const std::size_t other = by_offset[over];
            if (offset[row] + size[row] > offset[other])
                return std::pair<std::size_t, std::size_t>{row, other};
        }
        live.insert(rank);
    }
    return std::nullopt;
}

} // namespace tightship::verify
