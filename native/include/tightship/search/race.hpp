/// Series of attempts at an instance, one after another or two at once, until one settles it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "tightship/search/attempt.hpp"
#include "tightship/search/fit.hpp"
#include "tightship/search/order.hpp"

namespace tightship::search {

/// Number of lanes between which attempts alternate. Lanes have experience of their own and may run
/// at once.
inline constexpr int kLanes = 2;

/// Decisions for each buffer that the shortest attempts may make.
inline constexpr std::int64_t kPatience = 6;

/// Returns element `turn`, from 1, of 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... Source: Luby, Sinclair,
/// Zuckerman, "Optimal Speedup of Las Vegas Algorithms", 1993.
inline std::int64_t luby(std::int64_t turn) {
    for (;;) {
        std::int64_t span = 1;
        while (span < turn)
            span = 2 * span + 1;
        if (span == turn)
            return (span + 1) / 2;
        turn -= span / 2;
    }
}

/// Decisions allowed to each attempt, up to a sum.
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

/// Runs attempts until the first settles the instance.
template <class Instance, class Attempt> class Race {
  public:
    Race(const Instance &instance, const Limits &limits)
        : instance_(instance), limits_(limits), orders_(keys_of(instance)),
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
        std::int64_t settled = -1; // attempt that found `answer`
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

    /// Runs an attempt; returns whether another attempt of the lane is useful.
    bool try_once(Lane &lane, std::int64_t attempt, std::int64_t nodes) {
        for (std::int64_t &blame : lane.blame.buffer)
            blame /= 2;
        const std::vector<int> rank = orders_.ranks(attempt, lane.blame.buffer);
        Attempt made(instance_, rank, lane.blame);
        const Wanted wanted{limits_.stop, &first_, attempt};
        const Outcome outcome = made.run(nodes, wanted);
        lane.nodes.push_back(made.nodes());
        if (outcome == Outcome::stopped)
            return wanted();
        lane.settled = attempt;
        if (outcome == Outcome::placed) {
            lane.answer.verdict = Verdict::fits;
            lane.answer.offsets.assign(made.offsets().begin(), made.offsets().end());
        } else {
            lane.answer.verdict = Verdict::infeasible;
            made.conflict().for_each([&](int i) { lane.answer.conflict.push_back(i); });
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

    const Instance &instance_;
    const Limits &limits_;
    Orders orders_;
    std::int64_t nodes_max_;
    std::array<Lane, kLanes> lanes_;
    std::atomic<std::int64_t> first_ = std::numeric_limits<std::int64_t>::max();
};

} // namespace tightship::search
