#include "tightship/packing/items.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "tightship/packing/rising.hpp"

namespace tightship::packing {
namespace {

/// Rectangles placed in a bank, in a binary tree over the steps: each at the highest node whose
/// middle it contains.
class Placed {
  public:
    explicit Placed(std::span<const std::int64_t> steps)
        : steps_(steps), nodes_(4 * steps.size() + 4) {}

    void add(const Rectangle &placed) {
        std::size_t node = 1;
        std::size_t low = 0;
        std::size_t high = steps_.size();
        for (;;) {
            Node &here = nodes_[node];
            ++here.count;
            const std::size_t middle = (low + high) / 2;
            if (high - low <= 1 ||
                (placed.start <= steps_[middle] && steps_[middle] < placed.stop)) {
                here.rectangles.push_back(placed);
                return;
            }
            if (steps_[middle] < placed.start)
                low = middle;
            else
                high = middle;
            node = 2 * node + (low == middle);
        }
    }

    /// Calls `visit` for each rectangle that shares a step with [start, stop).
    template <typename Visit>
    void meeting(std::int64_t start, std::int64_t stop, const Visit &visit) const {
        search(1, 0, steps_.size(), start, stop, visit);
    }

  private:
    struct Node {
        std::vector<Rectangle> rectangles;
        std::size_t count = 0; // at this node and below
    };

    template <typename Visit>
    void search(std::size_t node, std::size_t low, std::size_t high, std::int64_t start,
                std::int64_t stop, const Visit &visit) const {
        const Node &here = nodes_[node];
        if (here.count == 0)
            return;
        for (const Rectangle &placed : here.rectangles)
            if (placed.start < stop && start < placed.stop)
                visit(placed);
        if (high - low <= 1)
            return;
        const std::size_t middle = (low + high) / 2;
        if (start < steps_[middle])
            search(2 * node, low, middle, start, stop, visit);
        if (steps_[middle] < stop)
            search(2 * node + 1, middle, high, start, stop, visit);
    }

    std::span<const std::int64_t> steps_;
    std::vector<Node> nodes_;
};

using Bases = std::pair<std::int64_t, std::int64_t>; // excluded: first < base < second

class Placement {
  public:
    Placement(const Items &items, const Banks &banks) : items_(items), banks_(banks) {
        begins_.assign(items.count() + 1, items.rectangles.size());
        for (std::size_t at = items.rectangles.size(); at-- > 0;)
            begins_[items.rectangles[at].owner] = at;
        for (std::size_t item = items.count(); item-- > 0;)
            begins_[item] = std::min(begins_[item], begins_[item + 1]);
        std::vector<std::int64_t> ends;
        for (const auto rectangles : {items.rectangles, banks.forbidden})
            for (const Rectangle &rectangle : rectangles) {
                ends.push_back(rectangle.start);
                ends.push_back(rectangle.stop);
            }
        for (const std::uint32_t end : rising(ends))
            if (steps_.empty() || steps_.back() != ends[end])
                steps_.push_back(ends[end]);
        placed_.assign(banks.capacity.size(), Placed(steps_));
        for (const Rectangle &rectangle : banks.forbidden)
            placed_[rectangle.owner].add(rectangle);
        places_ = {std::vector<std::int64_t>(items.count(), 0),
                   std::vector<std::int64_t>(items.count(), 0)};
    }

    void put(std::size_t item) {
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        for (const std::int64_t bank : banks_.by_cost) {
            if ((items_.banks[item] >> bank & 1) == 0)
                continue;
            const std::int64_t base = lowest(item, bank);
            const std::int64_t over =
                items_.pinned[item] >= 0
                    ? base - items_.pinned[item]
                    : std::max<std::int64_t>(0, base + items_.top[item] - banks_.capacity[bank]);
            if (over < least) {
                least = over;
                places_.base[item] = items_.pinned[item] >= 0 ? items_.pinned[item] : base;
                places_.bank[item] = bank;
            }
            if (over == 0)
                break;
        }
        for (const Rectangle &own : rectangles(item)) {
            const std::int64_t base = places_.base[item];
            placed_[places_.bank[item]].add(
                {own.owner, own.start, own.stop, base + own.bottom, base + own.top});
        }
    }

    Places take() { return std::move(places_); }

  private:
    std::span<const Rectangle> rectangles(std::size_t item) const {
        return items_.rectangles.subspan(begins_[item], begins_[item + 1] - begins_[item]);
    }

    /// Returns the lowest base, from the pinned one up, at which the item meets no placed
    /// rectangle.
    std::int64_t lowest(std::size_t item, std::int64_t bank) {
        excluded_.clear();
        for (const Rectangle &own : rectangles(item))
            placed_[bank].meeting(own.start, own.stop, [&](const Rectangle &other) {
                excluded_.emplace_back(other.bottom - own.top, other.top - own.bottom);
            });
        std::sort(excluded_.begin(), excluded_.end());
        std::int64_t base = std::max(items_.pinned[item], items_.remainder[item]);
        for (const auto &[below, above] : excluded_) {
            if (below >= base)
                break;
            if (above > base)
                base = above + ((items_.remainder[item] - above) & (items_.alignment[item] - 1));
        }
        return base;
    }

    const Items &items_;
    const Banks &banks_;
    std::vector<std::size_t> begins_;
    std::vector<std::int64_t> steps_;
    std::vector<Placed> placed_;
    std::vector<Bases> excluded_;
    Places places_;
};

} // namespace

Places first_fit(const Items &items, const Banks &banks, std::span<const std::int64_t> order) {
    Placement placement(items, banks);
    for (const bool pinned : {true, false})
        for (const std::int64_t item : order)
            if ((items.pinned[item] >= 0) == pinned)
                placement.put(item);
    return placement.take();
}

} // namespace tightship::packing
