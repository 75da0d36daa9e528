#include "tightship/search/item_descent.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace tightship::search {

ItemDescent::ItemDescent(const ItemInstance &instance, std::span<const int> rank, Blame &blame)
    : instance_(instance), rank_(rank), blame_(blame), low_(instance.count(), 0),
      roof_(instance.count(), kFar), at_(instance.count(), 0), deferral_(instance.count(), kNone),
      witness_(instance.sections(), kNone), watching_(instance.count(), 0),
      is_touched_(instance.sections(), 0), claim_(instance.count()) {}

Outcome ItemDescent::run(std::int64_t nodes_max, const Wanted &wanted) {
    bool fits = start();
    for (;;) {
        if (++nodes_ > nodes_max || (nodes_ % 256 == 1 && !wanted()))
            return Outcome::stopped;
        const int item = fits ? choose() : kFailed;
        if (item == kNone)
            return Outcome::placed;
        if (item != kFailed) {
            decisions_.push_back({changes_.size(), item});
            fits = place(item);
            continue;
        }
        for (fits = false; !fits && !decisions_.empty();) {
            const Decision last = decisions_.back();
            decisions_.pop_back();
            claim_.for_each([&](int blamed) { ++blame_.buffer[blamed]; });
            fits = unwind(last.changes) && defer(last.item);
        }
        if (!fits) {
            unwind(0);
            return Outcome::failed;
        }
    }
}

/// Places items that have only one base.
bool ItemDescent::start() {
    for (int item = 0; item < instance_.count(); ++item) {
        low_[item] = instance_.base_from(item, 0);
        if (low_[item] == kFar)
            return refuse(item);
    }
    for (int section = 0; section < instance_.sections(); ++section)
        if (!section_fits(section))
            return false;
    for (int item = instance_.count(); item-- > 0;)
        if (instance_.base_from(item, low_[item] + 1) == kFar && !place(item))
            return false;
    return true;
}

/// Returns the item that is decided next: none can lie lower. kNone if all are placed; kFailed,
/// with a claim, if nothing can carry the lowest.
int ItemDescent::choose() {
    for (;;) {
        int chosen = kNone;
        for (int item = 0; item < instance_.items; ++item) {
            if (is_placed(item))
                continue;
            const auto key = [&](int one) {
                return std::tuple(low_[one], deferral_[one] != kNone, rank_[one]);
            };
            if (chosen == kNone || key(item) < key(chosen))
                chosen = item;
        }
        if (chosen == kNone)
            return kNone;
        const std::int64_t base = lowest_carried(chosen, low_[chosen]);
        if (base == low_[chosen])
            return chosen;
        assert(deferral_[chosen] != kNone);
        remember(chosen, kCarried);
        if (!raise(chosen, base))
            return kFailed;
    }
}

/// Returns the lowest base from `from` on at which something keeps an item up, or may come to.
std::int64_t ItemDescent::lowest_carried(int item, std::int64_t from) const {
    std::int64_t lowest = kFar;
    for (const auto &range : instance_.ranges_of(item))
        if (const std::int64_t base = instance_.base_from(item, range.first); base >= from)
            lowest = std::min(lowest, base);
    const std::int64_t any = instance_.base_from(item, from);
    for (const auto &meeting : instance_.meetings_of(item)) {
        const int other = meeting.other;
        const std::int64_t below = is_placed(other) ? at_[other] : low_[other];
        std::int64_t base = instance_.base_from(item, below - meeting.below);
        if (base < from)
            base = is_placed(other) ? kFar : any;
        lowest = std::min(lowest, base);
    }
    return lowest;
}

bool ItemDescent::place(int item) {
    const std::int64_t base = low_[item];
    remember(item, kPlaced);
    at_[item] = base;
    low_[item] = kFar;
    touch(item);
    for (const auto &meeting : instance_.meetings_of(item)) {
        const int other = meeting.other;
        if (is_placed(other) || base + meeting.above <= low_[other])
            continue;
        if (base + meeting.below >= low_[other]) {
            if (base + meeting.below < roof_[other]) {
                remember(other, kNoted);
                roof_[other] = base + meeting.below;
            }
            continue;
        }
        remember(other, item);
        if (!raise_to(other, instance_.base_from(other, base + meeting.above)))
            return false;
    }
    return look();
}

/// Leaves `item` to be carried, because placing it has just failed by the present claim.
bool ItemDescent::defer(int item) {
    const std::int64_t base = lowest_carried(item, low_[item] + 1);
    remember(item, kDeferred);
    deferral_[item] = reason_count_++;
    claim_.push_on(reasons_);
    return raise(item, base);
}

bool ItemDescent::raise(int item, std::int64_t base) {
    return raise_to(item, base) && look();
}

/// Raises the lowest base of an item to the first from `base` on that meets no placed item.
bool ItemDescent::raise_to(int item, std::int64_t base) {
    low_[item] = base;
    if (base == kFar)
        return refuse(item);
    touch(item);
    if (base <= roof_[item])
        return true;
    remember(item, kNoted);
    for (bool is_raised = true; is_raised;) {
        is_raised = false;
        roof_[item] = kFar;
        for (const auto &meeting : instance_.meetings_of(item)) {
            if (!is_placed(meeting.other))
                continue;
            const std::int64_t from = at_[meeting.other] - meeting.above;
            const std::int64_t to = at_[meeting.other] - meeting.below;
            if (to <= low_[item])
                continue;
            if (from >= low_[item]) {
                roof_[item] = std::min(roof_[item], from);
                continue;
            }
            remember(item, meeting.other);
            low_[item] = instance_.base_from(item, to);
            if (low_[item] == kFar)
                return refuse(item);
            is_raised = true;
        }
    }
    return true;
}

/// Returns whether undecided items still fit the sections that have been touched.
bool ItemDescent::look() {
    bool fits = true;
    for (const int section : touched_) {
        is_touched_[section] = 0;
        fits = fits && section_fits(section);
    }
    touched_.clear();
    return fits && (instance_.banks.size() == 1 || (cost_fits() && peaks_fit()));
}

bool ItemDescent::section_fits(int section) {
    std::int64_t floor = kFar;
    int lowest = kNone;
    for (const auto &piece : instance_.pieces_of(section)) {
        if (is_placed(piece.item) || low_[piece.item] + piece.bottom >= floor)
            continue;
        floor = low_[piece.item] + piece.bottom;
        lowest = piece.item;
    }
    if (lowest == kNone)
        return true;
    bool fits = fits_between(section, floor, kFar);
    if (instance_.banks.size() > 1)
        for (const auto &bank : instance_.banks)
            fits = fits && fits_between(section, bank.floor, kFar) &&
                   fits_between(section, bank.floor, bank.ceiling);
    if (!fits) {
        ++blame_.section[section];
        return false;
    }
    changes_.push_back({section, kWitness, 0, 0, witness_[section]});
    set_witness(section, lowest);
    return true;
}

/// Returns whether offsets [from, to) hold what is placed there and what can lie nowhere else.
bool ItemDescent::fits_between(int section, std::int64_t from, std::int64_t to) {
    const auto bytes_inside = [&](const ItemInstance::Piece &piece) {
        const std::int64_t base = is_placed(piece.item) ? at_[piece.item] : low_[piece.item];
        if (is_placed(piece.item))
            return std::max<std::int64_t>(
                std::min(base + piece.top, to) - std::max(base + piece.bottom, from), 0);
        const std::int64_t last = instance_.ranges_of(piece.item).back().last;
        const bool is_inside = base + piece.bottom >= from && last + piece.top <= to;
        return is_inside ? piece.top - piece.bottom : 0;
    };
    std::int64_t bytes = 0;
    for (const auto &piece : instance_.pieces_of(section))
        bytes += bytes_inside(piece);
    if (bytes <= bytes_between(from, to))
        return true;
    claim_.clear();
    for (const auto &piece : instance_.pieces_of(section))
        if (bytes_inside(piece) > 0)
            claim_.insert(piece.item);
    return false;
}

std::int64_t ItemDescent::bytes_between(std::int64_t from, std::int64_t to) const {
    std::int64_t bytes = 0;
    for (const auto &bank : instance_.banks)
        bytes += std::max<std::int64_t>(std::min(to, bank.ceiling) - std::max(from, bank.floor), 0);
    return bytes;
}

/// Returns whether the cost limit holds with each item in the cheapest bank that it may still be
/// in.
bool ItemDescent::cost_fits() {
    std::int64_t cost = 0;
    const auto cost_of = [&](int item) {
        return instance_.banks[bank_of(item)].cost * instance_.charge[item];
    };
    for (int item = 0; item < instance_.items; ++item)
        cost += cost_of(item);
    if (cost <= instance_.limits.cost)
        return true;
    claim_.clear();
    for (int item = 0; item < instance_.items; ++item)
        if (cost_of(item) > 0)
            claim_.insert(item);
    return false;
}

/// Returns whether the peaks of all banks stay within their limit, as far as is decided.
bool ItemDescent::peaks_fit() {
    std::vector<std::pair<std::int64_t, int>> highest(instance_.banks.size(), {0, kNone});
    for (int item = 0; item < instance_.items; ++item) {
        const int bank = bank_of(item);
        const bool is_settled = is_placed(item) || instance_.ranges_of(item).back().bank == bank;
        const std::int64_t base = is_placed(item) ? at_[item] : low_[item];
        if (is_settled)
            highest[bank] = std::max(
                highest[bank], {base + instance_.top[item] - instance_.banks[bank].floor, item});
    }
    std::int64_t sum = 0;
    for (const auto &[peak, item] : highest)
        sum += peak;
    if (sum <= instance_.limits.peak)
        return true;
    claim_.clear();
    for (const auto &[peak, item] : highest)
        if (item != kNone)
            claim_.insert(item);
    return false;
}

/// Returns the bank that an item is in, or is in at its lowest base.
int ItemDescent::bank_of(int item) const {
    return instance_.bank_at(item, is_placed(item) ? at_[item] : low_[item]);
}

/// Marks for a check the sections whose witness is an item that has been placed or raised. As long
/// as a witness stays where it is, the bytes above it suffice, unless several banks divide them.
void ItemDescent::touch(int item) {
    if (watching_[item] == 0 && instance_.banks.size() == 1)
        return;
    for (const int section : instance_.sections_of(item)) {
        if (witness_[section] != item && instance_.banks.size() == 1)
            continue;
        if (is_touched_[section] == 0)
            touched_.push_back(section);
        is_touched_[section] = 1;
    }
}

void ItemDescent::set_witness(int section, int item) {
    if (witness_[section] != kNone)
        --watching_[witness_[section]];
    witness_[section] = item;
    if (item != kNone)
        ++watching_[item];
}

void ItemDescent::remember(int item, int cause) {
    changes_.push_back({item, cause, low_[item], roof_[item], deferral_[item]});
}

bool ItemDescent::refuse(int item) {
    claim_.clear();
    claim_.insert(item);
    return false;
}

/// Reverts changes, and turns the claim into one about the state before them. Returns whether the
/// claim names the item that was placed among them.
bool ItemDescent::unwind(std::size_t size) {
    for (const int section : touched_)
        is_touched_[section] = 0;
    touched_.clear();
    bool is_named = false;
    while (changes_.size() > size) {
        const Change change = changes_.back();
        changes_.pop_back();
        if (change.cause == kWitness) {
            set_witness(change.item, change.deferral);
            continue;
        }
        const bool is_claimed = claim_.has(change.item);
        if (change.cause == kPlaced)
            is_named |= is_claimed;
        else if (change.cause == kCarried && is_claimed)
            claim_.add_nth_of(reasons_, change.deferral);
        else if (change.cause == kDeferred) {
            if (is_claimed)
                claim_.add_top_of(reasons_);
            claim_.pop_from(reasons_);
            --reason_count_;
        } else if (change.cause >= 0 && is_claimed)
            claim_.insert(change.cause);
        low_[change.item] = change.low;
        roof_[change.item] = change.roof;
        deferral_[change.item] = change.deferral;
    }
    return is_named;
}

} // namespace tightship::search
