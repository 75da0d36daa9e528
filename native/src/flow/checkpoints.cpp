#include "tightship/flow/checkpoints.hpp"

#include <algorithm>

namespace tightship::flow {
namespace {

constexpr std::int64_t kImpossible = std::int64_t{1} << 60; // three of them fit 64 bits

} // namespace

CheckpointTable::CheckpointTable(const Atoms &atoms, std::int64_t slots)
    : count_(atoms.count()), stride_(static_cast<std::size_t>(slots) + 1), swept_(count_ + 1, 0),
      saved_(atoms.saved.begin(), atoms.saved.end()), held_(atoms.held.begin(), atoms.held.end()),
      cost_(count_ * (count_ + 1) / 2 * stride_, kImpossible),
      choice_(count_ * (count_ + 1) / 2 * stride_, -1) {
    for (std::size_t atom = 0; atom < count_; ++atom)
        swept_[atom + 1] = swept_[atom] + atoms.sweep[atom];
    for (std::size_t length = 0; length < count_; ++length)
        for (std::size_t first = 0; first + length < count_; ++first)
            fill(atoms, first, first + length);
    if (count_ > 0) {
        const auto whole = cost_.begin() + static_cast<std::ptrdiff_t>(row(0, count_ - 1));
        cost_ = std::vector(whole, whole + static_cast<std::ptrdiff_t>(stride_));
    }
}

void CheckpointTable::fill(const Atoms &atoms, std::size_t first, std::size_t last) {
    if (first == last)
        return fill_one(atoms, first);
    fill_kept(atoms, first, last);
    for (std::size_t at = first + 1; at <= last; ++at)
        fill_checkpoint(atoms, first, at, last);
}

void CheckpointTable::fill_one(const Atoms &atoms, std::size_t atom) {
    const std::size_t at = row(atom, atom);
    const auto least = static_cast<std::size_t>(
        std::max(atoms.whole_peak[atom] + atoms.arriving[atom], atoms.back_peak[atom]));
    for (std::size_t slots = least; slots < stride_; ++slots) {
        cost_[at + slots] = atoms.last[atom];
        choice_[at + slots] = static_cast<std::int16_t>(atom);
    }
}

void CheckpointTable::fill_kept(const Atoms &atoms, std::size_t first, std::size_t last) {
    const std::size_t at = row(first, last), inner = row(first + 1, last);
    const auto saved = static_cast<std::size_t>(atoms.saved[first]);
    const auto least = std::max(
        saved, static_cast<std::size_t>(std::max(atoms.whole_peak[first] + atoms.arriving[last],
                                                 atoms.back_peak[first])));
    for (std::size_t slots = least; slots < stride_; ++slots) {
        const std::int64_t cost = atoms.whole[first] + cost_[inner + slots - saved];
        if (cost < cost_[at + slots]) {
            cost_[at + slots] = cost;
            choice_[at + slots] = static_cast<std::int16_t>(first);
        }
    }
}

void CheckpointTable::fill_checkpoint(const Atoms &atoms, std::size_t first, std::size_t at,
                                      std::size_t last) {
    const auto held = static_cast<std::size_t>(atoms.held[first * count_ + at]);
    const auto least = std::max(
        held, static_cast<std::size_t>(atoms.peaks[first * count_ + at] + atoms.arriving[last]));
    if (least >= stride_)
        return;
    const std::int64_t sweep = swept_[at] - swept_[first];
    const std::int64_t *behind = cost_.data() + row(at, last) + least - held;
    const std::int64_t *before = cost_.data() + row(first, at - 1) + least;
    std::int64_t *cost = cost_.data() + row(first, last) + least;
    std::int16_t *choice = choice_.data() + row(first, last) + least;
    for (std::size_t slot = 0; slot < stride_ - least; ++slot) {
        const std::int64_t made = sweep + behind[slot] + before[slot];
        if (made < cost[slot]) {
            cost[slot] = made;
            choice[slot] = static_cast<std::int16_t>(at);
        }
    }
}

std::int64_t CheckpointTable::operations(std::int64_t slots) const {
    if (count_ == 0)
        return 0;
    const std::int64_t cost = cost_[static_cast<std::size_t>(slots)];
    return cost < kImpossible ? cost : -1;
}

std::vector<std::int64_t> CheckpointTable::passes(std::int64_t slots) const {
    std::vector<std::int64_t> found;
    if (count_ > 0)
        follow(0, count_ - 1, slots, found);
    return found;
}

void CheckpointTable::follow(std::size_t first, std::size_t last, std::int64_t slots,
                             std::vector<std::int64_t> &passes) const {
    const auto add = [&passes](Pass pass, std::size_t atom) {
        passes.push_back(static_cast<std::int64_t>(pass));
        passes.push_back(static_cast<std::int64_t>(atom));
    };
    std::vector<std::size_t> kept;
    while (first < last) { // what is kept goes back last of all, in reverse
        const auto at =
            static_cast<std::size_t>(choice_[row(first, last) + static_cast<std::size_t>(slots)]);
        if (at == first) {
            add(Pass::whole, first);
            kept.push_back(first);
            slots -= saved_[first++];
            continue;
        }
        for (std::size_t atom = first; atom < at; ++atom)
            add(Pass::sweep, atom);
        follow(at, last, slots - held_[first * count_ + at], passes);
        last = at - 1;
    }
    add(Pass::last, first);
    add(Pass::back, first);
    for (auto atom = kept.rbegin(); atom != kept.rend(); ++atom)
        add(Pass::back, *atom);
}

} // namespace tightship::flow
