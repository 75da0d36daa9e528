#include "tightship/packing/holes.hpp"

#include <algorithm>

namespace tightship::packing {

Holes::Place Holes::at_least(const Hole &hole) const {
    const std::size_t block = std::lower_bound(last_.begin(), last_.end(), hole) - last_.begin();
    if (block == blocks_.size())
        return {block, 0};
    const auto begin = blocks_[block]->holes.begin();
    const auto end = begin + blocks_[block]->count;
    return {block, static_cast<std::size_t>(std::lower_bound(begin, end, hole) - begin)};
}

Holes::Place Holes::next(Place place) const {
    if (++place.at == blocks_[place.block]->count)
        return {place.block + 1, 0};
    return place;
}

void Holes::insert(const Hole &hole) {
    if (blocks_.empty()) {
        blocks_.push_back(std::make_unique<Block>());
        last_.push_back(hole);
    }
    Place place = at_least(hole);
    if (is_end(place)) {
        place = {blocks_.size() - 1, blocks_.back()->count};
        last_.back() = hole;
    }
    Block &block = *blocks_[place.block];
    std::copy_backward(block.holes.begin() + place.at, block.holes.begin() + block.count,
                       block.holes.begin() + block.count + 1);
    block.holes[place.at] = hole;
    if (++block.count == kBlock)
        split(place.block);
}

void Holes::erase(Place place) {
    Block &block = *blocks_[place.block];
    std::copy(block.holes.begin() + place.at + 1, block.holes.begin() + block.count,
              block.holes.begin() + place.at);
    --block.count;
    if (block.count == 0) {
        blocks_.erase(blocks_.begin() + place.block);
        last_.erase(last_.begin() + place.block);
    } else {
        last_[place.block] = block.holes[block.count - 1];
    }
}

void Holes::split(std::size_t block) {
    auto upper = std::make_unique<Block>();
    Block &lower = *blocks_[block];
    lower.count = kBlock / 2;
    upper->count = kBlock - lower.count;
    std::copy(lower.holes.begin() + lower.count, lower.holes.end(), upper->holes.begin());
    last_.insert(last_.begin() + block, lower.holes[lower.count - 1]);
    blocks_.insert(blocks_.begin() + block + 1, std::move(upper));
}

} // namespace tightship::packing
