#include "tightship/search/fit.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <limits>
#include <thread>

#include "tightship/search/descent.hpp"
#include "tightship/search/instance.hpp"
#include "tightship/search/order.hpp"

namespace tightship::search {
namespace {

/// Attempts alternate between lanes, which learn apart from each other and may run at once.
constexpr int kLanes = 2;

/// Nodes for each buffer that the shortest attempts may take.
constexpr std::int64_t kPatience = 6;

/// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... for turns from 1. Source: Luby, Sinclair, Zuckerman,
/// "Optimal Speedup of Las Vegas Algorithms", 1993.
std::int64_t luby(std::int64_t turn) {
    for (;;) {
        std::int64_t span = 1;
        while (span < turn)
            span = 2 * span + 1;
        if (span == turn)
            return (span + 1) / 2;
        turn -= span / 2;
    }
}

/// The nodes of each attempt, until they add up to a sum.
class Allowance {
  public:
    Allowance(std::int64_t count, std::int64_t sum) : count_(count), left_(sum) {}

    std::int64_t next() {
        const std::int64_t nodes =
            std::min(left_, kPatience * count_ * luby(attempt_ / Orders::kSorts + 1));
        ++attempt_;
        left_ -= nodes;
        return nodes;
    }

  private:
    std::int64_t count_;
    std::int64_t left_;
    std::int64_t attempt_ = 0;
};

/// The first attempt at an instance that settles the matter.
template <class Unit> class Race {
  public:
    Race(const Instance<Unit> &instance, const Limits &limits)
        : instance_(instance), limits_(limits), orders_(instance),
          nodes_max_(limits.effort / instance.pairs_a_node()) {
        for (Lane &lane : lanes_) {
            lane.blame.buffer.assign(instance.count(), 0);
            lane.blame.section.assign(instance.sections(), 0);
        }
    }

    Answer run() {
        if (limits_.threads > 1)
            run_at_once();
        else
            run_in_turn();
        for (Lane &lane : lanes_)
            if (lane.error)
                std::rethrow_exception(lane.error);
        const auto settled =
            std::ranges::find_if(lanes_, [&](const Lane &lane) { return lane.settled == first_; });
        Answer answer = settled == lanes_.end() ? Answer{} : std::move(settled->answer);
        answer.nodes = nodes_up_to(first_);
        answer.effort = answer.nodes * instance_.pairs_a_node();
        return answer;
    }

  private:
    struct Lane {
        Blame blame;
        Answer answer;
        std::int64_t settled = -1; // the attempt that did
        std::vector<std::int64_t> nodes;
        std::exception_ptr error;
    };

    void run_in_turn() {
        Allowance allowance(instance_.count(), nodes_max_);
        for (std::int64_t attempt = 0; first_ > attempt; ++attempt) {
            const std::int64_t nodes = allowance.next();
            if (nodes == 0 || !try_once(lanes_[attempt % kLanes], attempt, nodes))
                return;
        }
    }

    void run_at_once() {
        std::array<std::thread, kLanes - 1> others;
        for (int i = 1; i < kLanes; ++i)
            others[i - 1] = std::thread([this, i] { run_lane(i); });
        run_lane(0);
        for (std::thread &other : others)
            other.join();
    }

    void run_lane(int index) {
        Lane &lane = lanes_[index];
        Allowance allowance(instance_.count(), nodes_max_);
        try {
            for (std::int64_t attempt = 0; first_ > attempt; ++attempt) {
                const std::int64_t nodes = allowance.next();
                if (nodes == 0)
                    return;
                if (attempt % kLanes == index && !try_once(lane, attempt, nodes))
                    return;
            }
        } catch (...) {
            lane.error = std::current_exception();
            first_ = -1;
        }
    }

    /// Says whether there is any point in another attempt of the lane.
    bool try_once(Lane &lane, std::int64_t attempt, std::int64_t nodes) {
        for (std::int64_t &blame : lane.blame.buffer)
            blame /= 2;
        const std::vector<int> rank = orders_.ranks(attempt, lane.blame.buffer);
        Descent<Unit> descent(instance_, rank, lane.blame);
        const Wanted wanted{limits_.stop, &first_, attempt};
        const Outcome outcome = descent.run(nodes, wanted);
        lane.nodes.push_back(descent.nodes());
        if (outcome == Outcome::stopped)
            return wanted();
        lane.settled = attempt;
        if (outcome == Outcome::placed) {
            lane.answer.verdict = Verdict::fits;
            lane.answer.offsets.assign(descent.offsets().begin(), descent.offsets().end());
        } else {
            lane.answer.verdict = Verdict::infeasible;
            descent.conflict().for_each([&](int i) { lane.answer.conflict.push_back(i); });
        }
        std::int64_t before = first_;
        while (attempt < before && !first_.compare_exchange_weak(before, attempt)) {
        }
        return false;
    }

    std::int64_t nodes_up_to(std::int64_t attempt) const {
        std::int64_t nodes = 0;
        for (int index = 0; index < kLanes; ++index)
            for (std::size_t turn = 0; turn < lanes_[index].nodes.size(); ++turn)
                if (static_cast<std::int64_t>(turn) * kLanes + index <= attempt)
                    nodes += lanes_[index].nodes[turn];
        return nodes;
    }

    const Instance<Unit> &instance_;
    const Limits &limits_;
    Orders orders_;
    std::int64_t nodes_max_;
    std::array<Lane, kLanes> lanes_;
    std::atomic<std::int64_t> first_ = std::numeric_limits<std::int64_t>::max();
};

/// Ends of the ranges of buffers that share no section with those of another range.
std::vector<int> cuts_of(const Sections &sections) {
    std::vector<int> cuts;
    int reached = 0;
    for (int i = 0; i < static_cast<int>(sections.buffer.size()); ++i) {
        if (i > 0 && sections.begin[i] >= reached)
            cuts.push_back(i);
        reached = std::max(reached, sections.end[i]);
    }
    cuts.push_back(static_cast<int>(sections.buffer.size()));
    return cuts;
}

template <class Unit>
Answer fit_units(const place::Buffers &buffers, const Sections &sections, const Units &units,
                 std::int64_t capacity, Limits limits) {
    Answer answer{Verdict::fits, place::Offsets(buffers.count(), 0), {}};
    int from = 0;
    for (const int to : cuts_of(sections)) {
        const auto instance = instance_of<Unit>(buffers, sections, units, capacity, from, to);
        Answer part = Race<Unit>(instance, limits).run();
        answer.nodes += part.nodes;
        answer.effort += part.effort;
        limits.effort = std::max<std::int64_t>(limits.effort - part.effort, 0);
        if (part.verdict != Verdict::fits) {
            answer.verdict = part.verdict;
            answer.offsets.clear();
            for (const std::int64_t i : part.conflict)
                answer.conflict.push_back(instance.buffer[i]);
            std::ranges::sort(answer.conflict);
            answer.bound = part.verdict == Verdict::open ? 0 : (capacity + 1) * units.bytes;
            return answer;
        }
        for (int i = 0; i < instance.count(); ++i)
            answer.offsets[instance.buffer[i]] = part.offsets[i] * units.bytes;
        from = to;
    }
    return answer;
}

} // namespace

Answer fit(const place::Buffers &buffers, std::int64_t capacity, const Limits &limits) {
    const Sections sections = sections_of(buffers);
    if (sections.buffer.empty())
        return {Verdict::fits, place::Offsets(buffers.count(), 0), {}};
    const Units units = units_of(buffers, sections);
    const std::int64_t used = std::min(capacity / units.bytes, units.total);
    constexpr std::int64_t kSmall = std::int64_t{1} << 29;
    if (units.total < kSmall)
        return fit_units<std::int32_t>(buffers, sections, units, used, limits);
    return fit_units<std::int64_t>(buffers, sections, units, used, limits);
}

} // namespace tightship::search
