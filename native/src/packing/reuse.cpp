#include "tightship/packing/reuse.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tightship::packing {
namespace {

constexpr std::int64_t kNever = std::int64_t{1} << 62; // the cost of sharing bytes while live
constexpr std::int64_t kNowhere = -1;
constexpr double kHot = 1.5; // temperatures, in units of the mean penalty
constexpr double kCold = 0.08;
constexpr std::size_t kMovedMax = 6;

/// Pseudorandom numbers, the same on every machine.
class Random {
  public:
    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t count) { return next() % count; }
    double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  private:
    std::uint64_t state_ = 0;
};

class Annealing {
  public:
    Annealing(const place::Buffers &buffers, std::span<const Penalty> penalties,
              std::int64_t capacity, std::span<const std::int64_t> offsets)
        : buffers_(buffers), penalties_(penalties), capacity_(capacity),
          offsets_(offsets.begin(), offsets.end()), neighbours_(buffers.count()) {
        for (std::size_t a = 0; a < buffers.count(); ++a)
            for (std::size_t b = 0; b < a; ++b)
                if (buffers.size[a] > 0 && buffers.size[b] > 0 && buffers.meet(a, b))
                    join(a, b, kNever);
        double sum = 0;
        for (const Penalty &penalty : penalties) {
            sum += static_cast<double>(penalty.cost);
            if (buffers.size[penalty.first] > 0 && buffers.size[penalty.second] > 0)
                join(penalty.first, penalty.second, penalty.cost);
        }
        mean_ = penalties.empty() ? 1 : sum / static_cast<double>(penalties.size());
        cost_ = reuse_cost(buffers, penalties, offsets_);
    }

    void run(std::int64_t moves) {
        place::Offsets best = offsets_;
        std::int64_t best_cost = cost_;
        for (std::int64_t move = 0; move < moves && best_cost > 0; ++move) {
            const double done = static_cast<double>(move) / static_cast<double>(moves);
            temperature_ = mean_ * kHot * std::pow(kCold / kHot, done);
            step();
            if (cost_ < best_cost) {
                best_cost = cost_;
                best = offsets_;
            }
        }
        offsets_ = best;
    }

    place::Offsets take() { return std::move(offsets_); }

  private:
    struct Neighbour {
        std::size_t buffer;
        std::int64_t cost;
    };

    /// Interval of offsets: `cost` more if below < offset < above.
    struct Span {
        std::int64_t below;
        std::int64_t above;
        std::int64_t cost;
    };

    void join(std::size_t a, std::size_t b, std::int64_t cost) {
        neighbours_[a].push_back({b, cost});
        neighbours_[b].push_back({a, cost});
    }

    bool share(std::size_t a, std::size_t b) const {
        return offsets_[a] != kNowhere && offsets_[b] != kNowhere &&
               offsets_[a] < offsets_[b] + buffers_.size[b] &&
               offsets_[b] < offsets_[a] + buffers_.size[a];
    }

    void step() {
        choose();
        std::vector<std::pair<std::size_t, std::int64_t>> before;
        std::int64_t removed = 0;
        for (const std::size_t buffer : moved_) {
            removed += cost_of(buffer);
            before.emplace_back(buffer, offsets_[buffer]);
            offsets_[buffer] = kNowhere;
        }
        std::int64_t added = 0;
        for (const std::size_t buffer : moved_) {
            const std::int64_t cost = put(buffer);
            added += cost;
            if (cost >= kNever) {
                added = kNever;
                break;
            }
        }
        const double worse = static_cast<double>(added - removed);
        if (added < kNever && (worse <= 0 || random_.unit() < std::exp(-worse / temperature_))) {
            cost_ += added - removed;
            return;
        }
        for (const auto &[buffer, offset] : before)
            offsets_[buffer] = offset;
    }

    /// Chooses a buffer that reuses bytes at a cost, and some of those it shares bytes or steps
    /// with.
    void choose() {
        moved_.clear();
        const Penalty &penalty = penalties_[random_.below(penalties_.size())];
        std::size_t buffer = random_.below(2) == 0 ? penalty.first : penalty.second;
        const std::size_t count = 1 + random_.below(kMovedMax);
        for (std::size_t tried = 0; tried < 4 * count && moved_.size() < count; ++tried) {
            if (buffers_.size[buffer] > 0 &&
                std::find(moved_.begin(), moved_.end(), buffer) == moved_.end())
                moved_.push_back(buffer);
            const std::size_t from = moved_.empty() ? buffer : moved_[random_.below(moved_.size())];
            if (neighbours_[from].empty())
                return;
            buffer = neighbours_[from][random_.below(neighbours_[from].size())].buffer;
        }
    }

    std::int64_t cost_of(std::size_t buffer) const {
        std::int64_t cost = 0;
        for (const Neighbour &other : neighbours_[buffer])
            if (other.cost < kNever && share(buffer, other.buffer))
                cost += other.cost;
        return cost;
    }

    /// Puts a buffer where it costs least; returns that cost, or kNever if it fits nowhere.
    std::int64_t put(std::size_t buffer) {
        const std::int64_t size = buffers_.size[buffer];
        const std::int64_t alignment = buffers_.alignment[buffer];
        const std::int64_t highest = (capacity_ - size) & -alignment;
        candidates_.assign({0, highest});
        begins_.clear();
        ends_.clear();
        for (const Neighbour &other : neighbours_[buffer]) {
            if (offsets_[other.buffer] == kNowhere)
                continue;
            const std::int64_t below = offsets_[other.buffer] - size;
            const std::int64_t above = offsets_[other.buffer] + buffers_.size[other.buffer];
            begins_.emplace_back(below, other.cost);
            ends_.emplace_back(above, other.cost);
            candidates_.push_back(below & -alignment);
            candidates_.push_back(place::align_up(above, alignment));
        }
        std::sort(begins_.begin(), begins_.end());
        std::sort(ends_.begin(), ends_.end());
        std::sort(candidates_.begin(), candidates_.end());
        return cheapest(buffer, highest);
    }

    std::int64_t cheapest(std::size_t buffer, std::int64_t highest) {
        std::int64_t least = kNever;
        std::int64_t soft = 0;
        std::int64_t hard = 0;
        std::size_t equal = 0;
        auto begin = begins_.begin();
        auto end = ends_.begin();
        for (const std::int64_t offset : candidates_) {
            for (; begin != begins_.end() && begin->first < offset; ++begin)
                (begin->second == kNever ? hard : soft) +=
                    begin->second == kNever ? 1 : begin->second;
            for (; end != ends_.end() && end->first <= offset; ++end)
                (end->second == kNever ? hard : soft) -= end->second == kNever ? 1 : end->second;
            if (offset < 0 || offset > highest || hard > 0 || soft > least)
                continue;
            equal = soft < least ? 1 : equal + 1;
            if (random_.below(equal) == 0)
                offsets_[buffer] = offset;
            least = soft;
        }
        return least;
    }

    const place::Buffers &buffers_;
    std::span<const Penalty> penalties_;
    std::int64_t capacity_;
    place::Offsets offsets_;
    std::vector<std::vector<Neighbour>> neighbours_;
    double mean_ = 1;
    double temperature_ = 1;
    std::int64_t cost_ = 0;
    Random random_;
    std::vector<std::size_t> moved_;
    std::vector<std::int64_t> candidates_;
    std::vector<std::pair<std::int64_t, std::int64_t>> begins_;
    std::vector<std::pair<std::int64_t, std::int64_t>> ends_;
};

} // namespace

std::int64_t reuse_cost(const place::Buffers &buffers, std::span<const Penalty> penalties,
                        std::span<const std::int64_t> offsets) {
    std::int64_t cost = 0;
    for (const auto &[first, second, penalty] : penalties)
        if (buffers.size[first] > 0 && buffers.size[second] > 0 &&
            offsets[first] < offsets[second] + buffers.size[second] &&
            offsets[second] < offsets[first] + buffers.size[first])
            cost += penalty;
    return cost;
}

place::Offsets reduce_reuse(const place::Buffers &buffers, std::span<const Penalty> penalties,
                            std::int64_t capacity, std::span<const std::int64_t> offsets,
                            std::int64_t moves) {
    Annealing annealing(buffers, penalties, capacity, offsets);
    if (!penalties.empty())
        annealing.run(moves);
    return annealing.take();
}

} // namespace tightship::packing
