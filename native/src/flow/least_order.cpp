#include "tightship/flow/least_order.hpp"

#include "tightship/flow/interval.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tightship::flow {
namespace {

using Order = std::vector<std::int64_t>;

std::span<const std::int64_t> row(std::span<const std::int64_t> stop,
                                  std::span<const std::int64_t> values, std::size_t step) {
    const std::size_t begin = step ? static_cast<std::size_t>(stop[step - 1]) : 0;
    return values.subspan(begin, static_cast<std::size_t>(stop[step]) - begin);
}

/// Live bytes while steps run one by one, from the first on or backward from the last. Backward, a
/// cell lives from the last step that touches it, or the end, to the first.
class Clock {
  public:
    Clock(const Traffic &traffic, bool is_back)
        : traffic_(traffic), is_back_(is_back), touches_(traffic.size.size(), 0) {
        for (const std::int64_t cell : traffic.touch)
            ++touches_[static_cast<std::size_t>(cell)];
        left_ = touches_;
        for (std::size_t cell = 0; is_back && cell < left_.size(); ++cell)
            live_ += is_kept(cell) && left_[cell] ? traffic.size[cell] : 0;
    }

    std::int64_t live() const { return live_; }

    struct Effect {
        std::int64_t load, after;
    };

    Effect effect(std::size_t step) const {
        std::int64_t begun = 0, ended = 0, shared = 0;
        for (const std::int64_t cell : row(traffic_.touch_stop, traffic_.touch, step)) {
            const std::size_t index = static_cast<std::size_t>(cell);
            begun += begins(index) ? traffic_.size[index] : 0;
            ended += ends(index) ? traffic_.size[index] : 0;
        }
        const auto fresh = row(traffic_.over_stop, traffic_.over_new, step);
        const auto old = row(traffic_.over_stop, traffic_.over_old, step);
        for (std::size_t k = 0; k < fresh.size(); ++k) {
            bool is_free = is_over(fresh[k], old[k]);
            for (std::size_t i = 0; is_free && i < k; ++i)
                is_free =
                    !((fresh[i] == fresh[k] || old[i] == old[k]) && is_over(fresh[i], old[i]));
            shared += is_free ? traffic_.size[static_cast<std::size_t>(fresh[k])] : 0;
        }
        return {live_ + begun - shared + traffic_.scratch[step], live_ + begun - ended};
    }

    /// Returns the live bytes while the step runs.
    std::int64_t run(std::size_t step) {
        const Effect found = effect(step);
        for (const std::int64_t cell : row(traffic_.touch_stop, traffic_.touch, step))
            --left_[static_cast<std::size_t>(cell)];
        live_ = found.after;
        return found.load;
    }

  private:
    bool is_kept(std::size_t cell) const { return traffic_.kept[cell] != 0; }

    bool begins(std::size_t cell) const {
        return left_[cell] == touches_[cell] && !(is_back_ && is_kept(cell));
    }

    bool ends(std::size_t cell) const { return left_[cell] == 1 && (is_back_ || !is_kept(cell)); }

    bool is_over(std::int64_t fresh, std::int64_t old) const {
        const std::size_t a = static_cast<std::size_t>(is_back_ ? old : fresh);
        const std::size_t b = static_cast<std::size_t>(is_back_ ? fresh : old);
        return traffic_.size[a] == traffic_.size[b] && begins(a) && ends(b);
    }

    const Traffic &traffic_;
    bool is_back_;
    std::vector<std::int32_t> touches_, left_;
    std::int64_t live_ = 0;
};

struct Neighbours {
    std::vector<std::vector<Step>> before, after;

    Neighbours(std::size_t steps, const Edges &edges) : before(steps), after(steps) {
        for (std::size_t i = 0; i < edges.from.size(); ++i) {
            before[static_cast<std::size_t>(edges.to[i])].push_back(
                static_cast<Step>(edges.from[i]));
            after[static_cast<std::size_t>(edges.from[i])].push_back(
                static_cast<Step>(edges.to[i]));
        }
    }
};

/// Returns steps in the order given, except that those which free bytes, or take none, run as soon
/// as they can. Backward, the others do, so that steps which take bytes run as late as they can.
Order eager(const Traffic &traffic, const Neighbours &near, const Order &given, bool is_back) {
    const auto &waits = is_back ? near.after : near.before;
    const auto &wakes = is_back ? near.before : near.after;
    const std::size_t steps = given.size();
    Order order = given;
    if (is_back)
        std::ranges::reverse(order);
    std::vector<std::size_t> left(steps), place(steps);
    std::vector<bool> is_done(steps, false);
    for (std::size_t i = 0; i < steps; ++i)
        place[static_cast<std::size_t>(order[i])] = i;
    std::vector<std::size_t> ready; // by place, none of them worth running yet
    for (std::size_t step = 0; step < steps; ++step)
        if (left[step] = waits[step].size(); left[step] == 0)
            ready.push_back(step);
    Clock clock(traffic, is_back);
    Order found;
    std::int64_t peak = 0;
    const auto run = [&](std::size_t step) {
        peak = std::max(peak, clock.run(step));
        is_done[step] = true;
        found.push_back(static_cast<std::int64_t>(step));
        std::erase(ready, step);
        for (const Step next : wakes[step])
            if (--left[next] == 0)
                ready.push_back(next);
    };
    for (const std::int64_t next : order) {
        const std::size_t step = static_cast<std::size_t>(next);
        while (!is_done[step]) {
            const std::int64_t limit = std::max(peak, clock.effect(step).load);
            std::size_t best = step;
            for (const std::size_t other : ready) {
                const Clock::Effect effect = clock.effect(other);
                if (effect.after <= clock.live() && effect.load <= limit &&
                    (best == step || place[other] < place[best]))
                    best = other;
            }
            run(best);
        }
    }
    if (is_back)
        std::ranges::reverse(found);
    return found;
}

/// Returns an order that always runs the ready step that needs least, of the first that come.
Order greedy(const Traffic &traffic, const Neighbours &near) {
    constexpr std::size_t kLookedAt = 32;
    const std::size_t steps = traffic.steps();
    std::vector<std::size_t> left(steps);
    std::vector<std::size_t> ready;
    for (std::size_t step = 0; step < steps; ++step)
        if (left[step] = near.before[step].size(); left[step] == 0)
            ready.push_back(step);
    Clock clock(traffic, false);
    Order found;
    std::int64_t peak = 0;
    while (!ready.empty()) {
        // The steps that became ready last lie nearest to the live values.
        const std::size_t first = ready.size() > kLookedAt ? ready.size() - kLookedAt : 0;
        std::size_t best = first;
        auto best_key = std::pair{std::numeric_limits<std::int64_t>::max(), std::int64_t{0}};
        for (std::size_t i = first; i < ready.size(); ++i) {
            const Clock::Effect effect = clock.effect(ready[i]);
            const auto key = std::pair{std::max(peak, effect.load), effect.after};
            if (key < best_key)
                best = i, best_key = key;
        }
        const std::size_t step = ready[best];
        ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
        peak = std::max(peak, clock.run(step));
        found.push_back(static_cast<std::int64_t>(step));
        for (const Step next : near.after[step])
            if (--left[next] == 0)
                ready.push_back(next);
    }
    return found;
}

/// Returns an order in which a step's predecessors run right before it, for each step without
/// successors.
Order depth_first(const Neighbours &near) {
    const std::size_t steps = near.before.size();
    std::vector<std::size_t> next(steps, 0);
    std::vector<bool> is_begun(steps, false);
    Order found;
    std::vector<std::size_t> path;
    for (std::size_t end = 0; end < steps; ++end) {
        if (!near.after[end].empty())
            continue;
        path.push_back(end);
        is_begun[end] = true;
        while (!path.empty()) {
            const std::size_t step = path.back();
            if (next[step] == near.before[step].size()) {
                found.push_back(static_cast<std::int64_t>(step));
                path.pop_back();
            } else if (const std::size_t other = near.before[step][next[step]++];
                       !is_begun[other]) {
                is_begun[other] = true;
                path.push_back(other);
            }
        }
    }
    return found;
}

struct Loads {
    std::vector<std::int64_t> load, before; // while a step runs, and what is live before it

    Loads(const Traffic &traffic, const Order &order) {
        Clock clock(traffic, false);
        for (const std::int64_t step : order) {
            before.push_back(clock.live());
            load.push_back(clock.run(static_cast<std::size_t>(step)));
        }
    }

    std::size_t highest() const {
        return static_cast<std::size_t>(std::ranges::max_element(load) - load.begin());
    }
};

/// Returns the places of an order that every step before them must precede: 0, the end, and both
/// sides of each step that all others come before or after.
std::vector<std::size_t> cuts(const Neighbours &near, const Order &order) {
    const std::size_t steps = order.size();
    std::vector<std::size_t> place(steps);
    for (std::size_t i = 0; i < steps; ++i)
        place[static_cast<std::size_t>(order[i])] = i;
    // All steps before `i` lead to it if each has a successor no later than `i`.
    std::vector<std::size_t> latest(steps + 1, 0), earliest(steps + 1, steps);
    for (std::size_t i = 0; i < steps; ++i) {
        std::size_t next = steps;
        for (const Step step : near.after[static_cast<std::size_t>(order[i])])
            next = std::min(next, place[step]);
        latest[i + 1] = std::max(latest[i], next);
    }
    for (std::size_t i = steps; i-- > 0;) {
        std::size_t last = 0;
        bool has_any = false;
        for (const Step step : near.before[static_cast<std::size_t>(order[i])]) {
            last = std::max(last, place[step]);
            has_any = true;
        }
        earliest[i] = std::min(earliest[i + 1], has_any ? last + 1 : 0);
    }
    std::vector<std::size_t> found{0};
    for (std::size_t i = 0; i < steps; ++i)
        if (latest[i] <= i && earliest[i + 1] >= i + 1) {
            found.push_back(i);
            found.push_back(i + 1);
        }
    found.push_back(steps);
    return found;
}

/// Places `[start, stop)` of an order.
struct Around {
    std::size_t start, stop;
};

/// Lowers the peak until it stays the same; returns whether it fell.
bool lower(const Traffic &traffic, const Neighbours &near, Order &order, std::int64_t effort) {
    const std::vector<std::size_t> parts = cuts(near, order);
    while (true) {
        const Loads loads(traffic, order);
        const std::size_t peak = loads.highest();
        const auto after = std::ranges::upper_bound(parts, peak);
        const Around part{*(after - 1), *after};
        std::vector<Around> tried;
        if (part.stop - part.start <= kIntervalMax)
            tried.push_back(part);
        else
            for (const std::size_t share : {2, 1, 3}) {
                const std::size_t back = kIntervalMax * share / 4;
                std::size_t start = std::max(part.start, peak - std::min(peak, back));
                start = std::min(start, part.stop - kIntervalMax);
                tried.push_back({start, start + kIntervalMax});
            }
        bool is_lower = false;
        for (const Around &each : tried) {
            const Interval interval{traffic, order, each.start, each.stop, near.before};
            const IntervalOrder found =
                best_interval(interval, loads.load[peak], loads.before[each.start], effort);
            if (!found.order.empty()) {
                std::ranges::copy(found.order,
                                  order.begin() + static_cast<std::ptrdiff_t>(each.start));
                is_lower = true;
                break;
            }
            if (found.is_whole && each.start == part.start && each.stop == part.stop)
                return true;
        }
        if (!is_lower || effort <= 0)
            return false;
    }
}

} // namespace

std::int64_t peak_of(const Traffic &traffic, std::span<const std::int64_t> order) {
    Clock clock(traffic, false);
    std::int64_t peak = 0;
    for (const std::int64_t step : order)
        peak = std::max(peak, clock.run(static_cast<std::size_t>(step)));
    return peak;
}

LeastOrder least_order(const Traffic &traffic, const Edges &edges, std::int64_t effort) {
    const std::size_t steps = traffic.steps();
    Order best(steps);
    std::iota(best.begin(), best.end(), std::int64_t{0});
    if (steps == 0)
        return {best, 0, true};
    const Neighbours near(steps, edges);
    std::int64_t peak = peak_of(traffic, best);
    const auto offer = [&](const Order &order) {
        if (const std::int64_t reached = peak_of(traffic, order); reached < peak) {
            peak = reached;
            best = order;
        }
    };
    const Order given = best;
    const Order early = eager(traffic, near, given, false);
    offer(early);
    offer(eager(traffic, near, early, true));
    const Order late = eager(traffic, near, given, true);
    offer(late);
    offer(eager(traffic, near, late, false));
    const Order picked = greedy(traffic, near);
    offer(picked);
    offer(eager(traffic, near, picked, true));
    const Order deep = depth_first(near);
    offer(deep);
    offer(eager(traffic, near, deep, false));
    Order lowered = best;
    const bool is_least = lower(traffic, near, lowered, effort);
    offer(lowered);
    return {best, peak, is_least};
}

} // namespace tightship::flow
