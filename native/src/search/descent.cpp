#include "tightship/search/descent.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "tightship/cpu/clones.hpp"

namespace tightship::search {
namespace {

constexpr int kBlock = 32;

template <class Unit> TIGHTSHIP_INLINE Unit lowest_in(const Unit *low, int count, Unit lowest) {
    for (int i = 0; i < count; ++i)
        lowest = low[i] < lowest ? low[i] : lowest;
    return lowest;
}

template <class Unit>
TIGHTSHIP_INLINE Unit lowest_top_in(const Unit *low, const Unit *size, int count, Unit lowest) {
    for (int i = 0; i < count; ++i) {
        const Unit top = low[i] + size[i];
        lowest = top < lowest ? top : lowest;
    }
    return lowest;
}

/// Smallest of each block of `kBlock` numbers, and of all.
template <class Unit>
TIGHTSHIP_INLINE Unit lowest_by_block(const Unit *low, int count, Unit far, Unit *blocks) {
    Unit lowest = far;
    for (; count >= kBlock; count -= kBlock, low += kBlock) {
        *blocks = lowest_in(low, kBlock, far);
        lowest = std::min(lowest, *blocks++);
    }
    *blocks = lowest_in(low, count, far);
    return std::min(lowest, *blocks);
}

// The macro cannot clone templates.
TIGHTSHIP_CLONES int32_t lowest_block(const int32_t *low, int count, int32_t far, int32_t *blocks) {
    return lowest_by_block(low, count, far, blocks);
}
TIGHTSHIP_CLONES int64_t lowest_block(const int64_t *low, int count, int64_t far, int64_t *blocks) {
    return lowest_by_block(low, count, far, blocks);
}
TIGHTSHIP_CLONES int32_t lowest_top(const int32_t *low, const int32_t *size, int count,
                                    int32_t far) {
    return lowest_top_in(low, size, count, far);
}
TIGHTSHIP_CLONES int64_t lowest_top(const int64_t *low, const int64_t *size, int count,
                                    int64_t far) {
    return lowest_top_in(low, size, count, far);
}

} // namespace

template <class Unit>
Descent<Unit>::Descent(const Instance<Unit> &instance, std::span<const int> rank, Blame &blame)
    : instance_(instance), rank_(rank), blame_(blame), rest_(instance.count(), 0),
      low_(instance.count(), 0), at_(instance.count(), 0), total_(instance.sections(), 0),
      crossing_(instance.sections() + 1, 0), witness_(instance.sections(), kNone),
      watching_(instance.count(), 0), blocks_(instance.count() / kBlock + 1),
      claim_(instance.count()) {
    for (int i = 0; i < instance.count(); ++i)
        if (instance.pin[i] != kFree)
            rest_[i] = low_[i] = instance.pin[i];
    for (int section = 0; section < instance.sections(); ++section) {
        for (const int member : instance.members_of(section)) {
            total_[section] += instance.size[member];
            crossing_[section] += instance.begin[member] < section;
        }
    }
}

template <class Unit> Outcome Descent<Unit>::run(std::int64_t nodes_max, const Wanted &wanted) {
    nodes_max_ = nodes_max;
    wanted_ = wanted;
    for (int section = 0; section < instance_.sections(); ++section)
        if (!watch(section))
            return Outcome::failed;
    enter({0, instance_.sections(), 0});
    return solve();
}

/// Calls `visit` for each buffer that is live together with `buffer`, and for itself.
template <class Unit>
template <class Visit>
void Descent<Unit>::for_each_neighbour(int buffer, Visit visit) const {
    const int begin = instance_.begin[buffer];
    for (const int other : instance_.members_of(begin))
        visit(other);
    const int stop = instance_.starts[instance_.end[buffer]];
    for (int other = instance_.starts[begin + 1]; other < stop; ++other)
        visit(other);
}

template <class Unit> Unit Descent<Unit>::align_up(Unit offset, int buffer) const {
    if (!instance_.aligned)
        return offset;
    return (offset + instance_.alignment[buffer] - 1) & -instance_.alignment[buffer];
}

/// Returns the lowest offset at which an undecided buffer may carry `buffer`; kFar if none can.
template <class Unit> Unit Descent<Unit>::lowest_carrier(int buffer) {
    const Unit low = std::exchange(low_[buffer], kFar);
    const int begin = instance_.begin[buffer];
    const int first = instance_.starts[begin + 1];
    const int count = instance_.starts[instance_.end[buffer]] - first;
    Unit lowest = lowest_top(low_.data() + first, instance_.size.data() + first, count, kFar);
    for (const int other : instance_.members_of(begin))
        lowest = std::min(lowest, low_[other] + instance_.size[other]);
    low_[buffer] = low;
    return lowest >= kFar ? kFar : align_up(lowest, buffer);
}

/// Returns whether `one` is chosen before `other`: it is lower, or as low and able to lie there.
template <class Unit> bool Descent<Unit>::is_before(int one, int other) const {
    if (low_[one] != low_[other])
        return low_[one] < low_[other];
    const bool one_carried = low_[one] > rest_[one];
    const bool other_carried = low_[other] > rest_[other];
    if (one_carried != other_carried)
        return other_carried;
    return rank_[one] < rank_[other];
}

template <class Unit> void Descent<Unit>::enter(Part part) {
    frames_.push_back({part, changes_.size(), 0, kNone, parts_.size(), parts_.size()});
}

template <class Unit> void Descent<Unit>::leave() {
    parts_.resize(frames_.back().first);
    frames_.pop_back();
}

/// Solves the entered part with an explicit stack, because decisions may nest as deep as there are
/// buffers.
template <class Unit> Outcome Descent<Unit>::solve() {
    for (;;) {
        if (++nodes_ > nodes_max_ || (nodes_ % 256 == 0 && !wanted_()))
            return Outcome::stopped;
        if (decide()) {
            while (!frames_.empty() && frames_.back().next == parts_.size())
                leave();
            if (frames_.empty())
                return Outcome::placed;
            enter(Part(parts_[frames_.back().next++]));
            continue;
        }
        while (!retry()) {
            unwind(frames_.back().entered);
            leave();
            if (frames_.empty())
                return Outcome::failed;
        }
    }
}

/// Places a buffer of the part entered last, and adds the parts that are left of it.
template <class Unit> bool Descent<Unit>::decide() {
    Frame &frame = frames_.back();
    frame.buffer = choose(frame.part);
    if (frame.buffer == kNone)
        return false;
    frame.before = changes_.size();
    if (!place(frame.buffer))
        return false;
    split(frame.part, frame.buffer);
    frame.next = frame.first;
    return true;
}

/// Unwinds the last placement in the part entered last, and leaves its buffer to be carried
/// instead.
template <class Unit> bool Descent<Unit>::retry() {
    const Frame &frame = frames_.back();
    if (frame.buffer == kNone)
        return false;
    parts_.resize(frame.first);
    claim_.for_each([&](int blamed) { ++blame_.buffer[blamed]; });
    return unwind(frame.before) && defer(frame.buffer);
}

/// Adds the parts that are left of `whole` after `placed` has been taken out of it.
template <class Unit> void Descent<Unit>::split(const Part &whole, int placed) {
    const auto cut = std::find(crossing_.begin() + instance_.begin[placed] + 1,
                               crossing_.begin() + instance_.end[placed], 0);
    if (cut == crossing_.begin() + instance_.end[placed]) {
        if (total_[whole.begin] != 0)
            parts_.push_back(whole);
        return;
    }
    const std::size_t first = parts_.size();
    int begin = whole.begin;
    const auto add = [&](int end) {
        Part part{begin, end, 0};
        bool is_empty = true;
        for (int section = begin; section < end; ++section) {
            is_empty &= total_[section] == 0;
            part.blame = std::max(part.blame, blame_.section[section]);
        }
        if (!is_empty)
            parts_.push_back(part);
        begin = end;
    };
    for (int section = instance_.begin[placed] + 1; section < instance_.end[placed]; ++section)
        if (crossing_[section] == 0)
            add(section);
    add(whole.end);
    std::stable_sort(parts_.begin() + static_cast<std::ptrdiff_t>(first), parts_.end(),
                     [](const Part &a, const Part &b) { return a.blame > b.blame; });
}

/// Returns the buffer of a part that is decided next: none can come below it. kNone, with a claim,
/// if nothing can carry the lowest of all.
template <class Unit> int Descent<Unit>::choose(const Part &part) {
    const int from = instance_.starts[part.begin];
    const int to = instance_.starts[part.end];
    for (;;) {
        const Unit lowest = lowest_block(low_.data() + from, to - from, kFar, blocks_.data());
        int chosen = kNone;
        for (int block = from; block < to; block += kBlock) {
            if (blocks_[(block - from) / kBlock] > lowest)
                continue;
            for (int i = block; i < std::min(block + kBlock, to); ++i)
                if (low_[i] == lowest && (chosen == kNone || is_before(i, chosen)))
                    chosen = i;
        }
        assert(lowest < kFar);
        if (low_[chosen] == rest_[chosen])
            return chosen;
        const Unit carried = lowest_carrier(chosen);
        if (carried + instance_.size[chosen] > instance_.capacity) {
            claim_.clear();
            claim_.insert(chosen);
            claim_neighbours(chosen);
            return kNone;
        }
        if (!raise(chosen, carried, kCarried))
            return kNone;
    }
}

template <class Unit> bool Descent<Unit>::place(int buffer) {
    const Unit offset = rest_[buffer];
    const Unit top = offset + instance_.size[buffer];
    changes_.push_back({buffer, kPlaced, offset, low_[buffer]});
    at_[buffer] = offset;
    rest_[buffer] = low_[buffer] = kFar;
    for (int section = instance_.begin[buffer]; section < instance_.end[buffer]; ++section) {
        total_[section] -= instance_.size[buffer];
        crossing_[section] -= section > instance_.begin[buffer];
    }
    raised_.clear();
    int hit = kNone; // pinned buffer left without room
    for_each_neighbour(buffer, [&](int other) {
        if (rest_[other] >= top)
            return;
        if (instance_.pin[other] != kFree)
            hit = other;
        changes_.push_back({other, kSupported, rest_[other], low_[other]});
        rest_[other] = align_up(top, other);
        if (low_[other] < rest_[other]) {
            low_[other] = rest_[other];
            if (watching_[other] > 0)
                raised_.push_back(other);
        }
    });
    if (hit != kNone) {
        claim_.clear();
        claim_.insert(hit);
        return false;
    }
    if (!watch_all_of(buffer))
        return false;
    return std::all_of(raised_.begin(), raised_.end(),
                       [&](int other) { return watch_all_of(other); });
}

/// Leaves `buffer` to be carried, because placing it has just failed by the present claim.
template <class Unit> bool Descent<Unit>::defer(int buffer) {
    claim_.insert(buffer);
    if (instance_.pin[buffer] != kFree)
        return false;
    const Unit carried = std::max<Unit>(lowest_carrier(buffer), low_[buffer] + 1);
    if (carried + instance_.size[buffer] > instance_.capacity)
        return false;
    claim_.push_on(reasons_);
    return raise(buffer, carried, kDeferred);
}

template <class Unit> bool Descent<Unit>::raise(int buffer, Unit low, Cause cause) {
    changes_.push_back({buffer, cause, rest_[buffer], low_[buffer]});
    low_[buffer] = low;
    return watching_[buffer] == 0 || watch_all_of(buffer);
}

/// Returns whether each section whose bottom `buffer` was to take has another buffer for it.
template <class Unit> bool Descent<Unit>::watch_all_of(int buffer) {
    int last = kNone; // sections side by side have most buffers in common
    for (int section = instance_.begin[buffer]; section < instance_.end[buffer]; ++section) {
        if (witness_[section] != buffer || low_[buffer] + total_[section] <= instance_.capacity)
            continue;
        if (last != kNone && instance_.end[last] > section &&
            low_[last] + total_[section] <= instance_.capacity)
            set_witness(section, last);
        else if (!watch(section))
            return false;
        last = witness_[section];
    }
    return true;
}

template <class Unit> void Descent<Unit>::set_witness(int section, int buffer) {
    if (witness_[section] != kNone)
        --watching_[witness_[section]];
    witness_[section] = buffer;
    ++watching_[buffer];
}

/// Finds the lowest of a section's undecided buffers; the rest must fit above it.
template <class Unit> bool Descent<Unit>::watch(int section) {
    Unit lowest = kFar;
    int lowest_member = kNone;
    for (const int member : instance_.members_of(section)) {
        const Unit low = low_[member];
        lowest_member = low < lowest ? member : lowest_member;
        lowest = std::min(lowest, low);
    }
    if (lowest_member == kNone)
        return true;
    if (lowest + total_[section] > instance_.capacity) {
        ++blame_.section[section];
        claim_.clear();
        for (const int member : instance_.members_of(section))
            if (low_[member] < kFar)
                claim_.insert(member);
        return false;
    }
    set_witness(section, lowest_member);
    return true;
}

/// Reverts changes, and turns the claim into one about the state before them. Returns whether a
/// placement among them had raised a buffer of the claim.
template <class Unit> bool Descent<Unit>::unwind(std::size_t size) {
    bool is_touched = false;
    while (changes_.size() > size) {
        const Change change = changes_.back();
        changes_.pop_back();
        rest_[change.buffer] = change.rest;
        low_[change.buffer] = change.low;
        const bool is_claimed = claim_.has(change.buffer);
        switch (change.cause) {
        case kPlaced:
            unplace(change.buffer);
            break;
        case kSupported:
            is_touched |= is_claimed;
            break;
        case kDeferred:
            if (is_claimed)
                claim_.add_top_of(reasons_);
            claim_.pop_from(reasons_);
            break;
        case kCarried:
            if (is_claimed)
                claim_neighbours(change.buffer);
            break;
        }
    }
    return is_touched;
}

template <class Unit> void Descent<Unit>::unplace(int buffer) {
    for (int section = instance_.begin[buffer]; section < instance_.end[buffer]; ++section) {
        total_[section] += instance_.size[buffer];
        crossing_[section] += section > instance_.begin[buffer];
        if (witness_[section] == buffer)
            continue;
        // None of the section's buffers is lower, so it is the witness again.
        set_witness(section, buffer);
    }
}

template <class Unit> void Descent<Unit>::claim_neighbours(int buffer) {
    for_each_neighbour(buffer, [&](int other) {
        if (low_[other] < kFar)
            claim_.insert(other);
    });
}

template class Descent<std::int32_t>;
template class Descent<std::int64_t>;

} // namespace tightship::search
