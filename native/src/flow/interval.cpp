#include "tightship/flow/interval.hpp"

#include <algorithm>
#include <unordered_map>

namespace tightship::flow {
namespace {

using Set = std::uint64_t;

/// Largest number of sets of one size that are kept; the best are.
constexpr std::size_t kWidth = 1 << 15;
constexpr std::size_t kNarrow = 256;

struct Piece {
    std::int64_t size = 0;
    Set touched = 0;
    bool is_born = false, lives_on = false;

    bool begins(Set done) const { return !is_born && !(touched & done); }
    bool ends(Set done, Set step) const { return !lives_on && (touched & ~done) == step; }
};

struct Pair {
    std::uint32_t fresh, old;
};

struct Local {
    std::vector<std::uint32_t> pieces;
    std::vector<Pair> over;
    std::int64_t scratch = 0;
    Set before = 0;
};

struct Effect {
    std::int64_t load, after;
};

/// Steps of an interval and the cells that they touch, numbered from 0.
class Part {
  public:
    explicit Part(const Interval &interval) : steps_(interval.stop - interval.start) {
        const Traffic &traffic = interval.traffic;
        std::unordered_map<std::int64_t, std::uint32_t> number;
        std::unordered_map<std::int64_t, std::size_t> bit;
        for (std::size_t i = 0; i < steps_.size(); ++i)
            bit[interval.order[interval.start + i]] = i;
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            const std::size_t step = static_cast<std::size_t>(interval.order[interval.start + i]);
            Local &local = steps_[i];
            local.scratch = traffic.scratch[step];
            for (const std::int64_t cell : cells_of(traffic, step)) {
                const auto [found, is_new] =
                    number.try_emplace(cell, static_cast<std::uint32_t>(pieces_.size()));
                if (is_new)
                    pieces_.push_back({traffic.size[static_cast<std::size_t>(cell)], 0, false,
                                       traffic.kept[static_cast<std::size_t>(cell)] != 0});
                pieces_[found->second].touched |= Set{1} << i;
                local.pieces.push_back(found->second);
            }
            const std::size_t end = static_cast<std::size_t>(traffic.over_stop[step]);
            for (std::size_t k = step ? static_cast<std::size_t>(traffic.over_stop[step - 1]) : 0;
                 k < end; ++k)
                local.over.push_back(
                    {number.at(traffic.over_new[k]), number.at(traffic.over_old[k])});
            for (const Step other : interval.before[step])
                if (const auto found = bit.find(other); found != bit.end())
                    local.before |= Set{1} << found->second;
        }
        for (std::size_t i = 0; i < interval.order.size(); ++i) {
            if (i == interval.start) {
                i = interval.stop - 1;
                continue;
            }
            const std::size_t step = static_cast<std::size_t>(interval.order[i]);
            for (const std::int64_t cell : cells_of(traffic, step))
                if (const auto found = number.find(cell); found != number.end())
                    (i < interval.start ? pieces_[found->second].is_born
                                        : pieces_[found->second].lives_on) = true;
        }
    }

    static std::span<const std::int64_t> cells_of(const Traffic &traffic, std::size_t step) {
        const std::size_t end = static_cast<std::size_t>(traffic.touch_stop[step]);
        const std::size_t begin = step ? static_cast<std::size_t>(traffic.touch_stop[step - 1]) : 0;
        return traffic.touch.subspan(begin, end - begin);
    }

    std::size_t count() const { return steps_.size(); }

    bool is_ready(Set done, std::size_t step) const {
        return !(done >> step & 1) && !(steps_[step].before & ~done);
    }

    Effect effect(Set done, std::int64_t live, std::size_t index) const {
        const Local &step = steps_[index];
        const Set bit = Set{1} << index;
        std::int64_t born = 0, freed = 0, shared = 0;
        for (const std::uint32_t piece : step.pieces) {
            const Piece &each = pieces_[piece];
            born += each.begins(done) ? each.size : 0;
            freed += each.ends(done, bit) ? each.size : 0;
        }
        for (std::size_t k = 0; k < step.over.size(); ++k) {
            const Pair pair = step.over[k];
            const Piece &fresh = pieces_[pair.fresh], &old = pieces_[pair.old];
            if (fresh.size != old.size || !fresh.begins(done) || !old.ends(done, bit))
                continue;
            const bool is_taken =
                std::any_of(step.over.begin(), step.over.begin() + static_cast<std::ptrdiff_t>(k),
                            [&](Pair other) {
                                return (other.fresh == pair.fresh || other.old == pair.old) &&
                                       pieces_[other.fresh].size == pieces_[other.old].size &&
                                       pieces_[other.fresh].begins(done) &&
                                       pieces_[other.old].ends(done, bit);
                            });
            shared += is_taken ? 0 : fresh.size;
        }
        return {live + born - shared + step.scratch, live + born - freed};
    }

  private:
    std::vector<Local> steps_;
    std::vector<Piece> pieces_;
};

/// Set of steps that have run, by the best way found to it.
struct Reached {
    Set done;
    std::int64_t peak, live;
    std::uint32_t from;
    std::uint8_t step;
};

/// Sets of one size.
class Level {
  public:
    void reach(const Reached &reached) {
        const auto [found, is_new] =
            place_.try_emplace(reached.done, static_cast<std::uint32_t>(all.size()));
        if (is_new)
            all.push_back(reached);
        else if (reached.peak < all[found->second].peak)
            all[found->second] = reached;
    }

    /// Keeps the best `width`; returns whether any was dropped.
    bool narrow(std::size_t width) {
        place_.clear();
        if (all.size() <= width)
            return false;
        std::ranges::stable_sort(all, [](const Reached &a, const Reached &b) {
            return a.peak != b.peak ? a.peak < b.peak : a.live < b.live;
        });
        all.resize(width);
        return true;
    }

    std::vector<Reached> all;

  private:
    std::unordered_map<Set, std::uint32_t> place_;
};

/// Returns a step that costs nothing now and no less later, so that it can run at once; the number
/// of steps if there is none.
std::size_t free_step(const Part &part, const Reached &at) {
    for (std::size_t step = 0; step < part.count(); ++step)
        if (part.is_ready(at.done, step)) {
            const Effect effect = part.effect(at.done, at.live, step);
            if (effect.after <= at.live && effect.load <= at.peak)
                return step;
        }
    return part.count();
}

} // namespace

IntervalOrder best_interval(const Interval &interval, std::int64_t limit, std::int64_t live,
                            std::int64_t &effort) {
    const Part part(interval);
    std::vector<std::vector<Reached>> levels{{{0, 0, live, 0, 0}}};
    bool is_whole = true;
    while (levels.size() <= part.count() && !levels.back().empty()) {
        Level next;
        for (std::size_t i = 0; i < levels.back().size(); ++i) {
            const Reached &at = levels.back()[i];
            const std::size_t only = free_step(part, at);
            effort -= static_cast<std::int64_t>(part.count());
            for (std::size_t step = only < part.count() ? only : 0; step < part.count(); ++step) {
                if (!part.is_ready(at.done, step))
                    continue;
                const Effect effect = part.effect(at.done, at.live, step);
                if (effect.load < limit)
                    next.reach({at.done | Set{1} << step, std::max(at.peak, effect.load),
                                effect.after, static_cast<std::uint32_t>(i),
                                static_cast<std::uint8_t>(step)});
                if (step == only)
                    break;
            }
        }
        is_whole &= !next.narrow(effort > 0 ? kWidth : kNarrow);
        levels.push_back(std::move(next.all));
    }
    if (levels.back().empty())
        return {{}, is_whole};
    std::vector<std::int64_t> order;
    std::uint32_t place = 0;
    for (std::size_t level = levels.size(); --level > 0;) {
        const Reached &at = levels[level][place];
        order.push_back(interval.order[interval.start + at.step]);
        place = at.from;
    }
    std::ranges::reverse(order);
    return {order, is_whole};
}

} // namespace tightship::flow
