#include "tightship/packing/contained.hpp"

#include <algorithm>
#include <numeric>

namespace tightship::packing {
namespace {

constexpr std::size_t kLeafSize = 8;

} // namespace

Contained::Contained(Steps start, Steps stop) : members_(start.size()), place_(start.size()) {
    while (leaf_count_ * kLeafSize < start.size())
        leaf_count_ *= 2;
    boxes_.resize(2 * leaf_count_);
    begins_.resize(leaf_count_ + 1, static_cast<std::uint32_t>(start.size()));
    leaves_.resize(start.size());
    std::iota(members_.begin(), members_.end(), 0U);
    split(start, stop, 1, 0, start.size());
    for (std::uint32_t at = 0; at < members_.size(); ++at) {
        const std::uint32_t lifetime = members_[at];
        place_[lifetime] = at;
        leaves_[at] = {start[lifetime], stop[lifetime], kGone};
    }
}

void Contained::split(Steps start, Steps stop, std::size_t node, std::size_t begin,
                      std::size_t end) {
    Box &box = boxes_[node];
    for (std::size_t at = begin; at < end; ++at) {
        const std::uint32_t lifetime = members_[at];
        box.start_min = std::min(box.start_min, start[lifetime]);
        box.start_max = std::max(box.start_max, start[lifetime]);
        box.stop_min = std::min(box.stop_min, stop[lifetime]);
        box.stop_max = std::max(box.stop_max, stop[lifetime]);
    }
    if (node >= leaf_count_) {
        begins_[node - leaf_count_] = static_cast<std::uint32_t>(begin);
        return;
    }
    const bool by_start =
        begin == end || box.start_max - box.start_min >= box.stop_max - box.stop_min;
    const Steps key = by_start ? start : stop;
    const std::size_t middle = begin + (end - begin) / 2;
    std::nth_element(members_.begin() + begin, members_.begin() + middle, members_.begin() + end,
                     [&](std::uint32_t a, std::uint32_t b) {
                         return std::pair(key[a], a) < std::pair(key[b], b);
                     });
    split(start, stop, 2 * node, begin, middle);
    split(start, stop, 2 * node + 1, middle, end);
}

void Contained::fill(Steps rank) {
    for (std::size_t at = 0; at < leaves_.size(); ++at)
        leaves_[at].rank = rank[members_[at]];
    for (std::size_t node = boxes_.size() - 1; node > 0; --node)
        boxes_[node].rank = least(node);
}

std::optional<std::uint32_t> Contained::first_within(std::uint32_t start,
                                                     std::uint32_t stop) const {
    std::uint32_t best = kGone;
    search(1, start, stop, best);
    return best == kGone ? std::nullopt : std::optional(best);
}

void Contained::search(std::size_t node, std::uint32_t start, std::uint32_t stop,
                       std::uint32_t &best) const {
    const Box &box = boxes_[node];
    if (box.rank >= best || box.start_max < start || box.stop_min > stop)
        return;
    if (box.start_min >= start && box.stop_max <= stop) {
        best = box.rank;
        return;
    }
    if (node >= leaf_count_) {
        const std::size_t leaf = node - leaf_count_;
        for (std::size_t at = begins_[leaf]; at < begins_[leaf + 1]; ++at)
            if (leaves_[at].start >= start && leaves_[at].stop <= stop)
                best = std::min(best, leaves_[at].rank);
        return;
    }
    const std::size_t nearer = 2 * node + (boxes_[2 * node + 1].rank < boxes_[2 * node].rank);
    search(nearer, start, stop, best);
    search(nearer ^ 1, start, stop, best);
}

void Contained::erase(std::uint32_t lifetime) {
    const std::uint32_t at = place_[lifetime];
    leaves_[at].rank = kGone;
    const auto next = std::upper_bound(begins_.begin(), begins_.end() - 1, at);
    for (std::size_t node = leaf_count_ + (next - begins_.begin()) - 1; node > 0; node /= 2) {
        const std::uint32_t rank = least(node);
        if (boxes_[node].rank == rank)
            return;
        boxes_[node].rank = rank;
    }
}

std::uint32_t Contained::least(std::size_t node) const {
    if (node < leaf_count_)
        return std::min(boxes_[2 * node].rank, boxes_[2 * node + 1].rank);
    std::uint32_t rank = kGone;
    for (std::size_t at = begins_[node - leaf_count_]; at < begins_[node - leaf_count_ + 1]; ++at)
        rank = std::min(rank, leaves_[at].rank);
    return rank;
}

} // namespace tightship::packing
