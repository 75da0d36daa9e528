#include "tightship/flow/min_cut.hpp"

#include <algorithm>
#include <limits>

namespace tightship::flow {
namespace {

/// Network with each edge beside its reverse: edges `e` and `e ^ 1`.
class Network {
  public:
    Network(std::size_t nodes, const Edges &edges, std::span<const std::int64_t> capacity)
        : first_(nodes + 1, 0), at_(2 * edges.from.size()), to_(2 * edges.from.size()),
          left_(2 * edges.from.size(), 0), depth_(nodes), next_(nodes) {
        for (std::size_t i = 0; i < edges.from.size(); ++i) {
            to_[2 * i] = static_cast<std::uint32_t>(edges.to[i]);
            to_[2 * i + 1] = static_cast<std::uint32_t>(edges.from[i]);
            left_[2 * i] = capacity[i];
            ++first_[to_[2 * i] + 1];
            ++first_[to_[2 * i + 1] + 1];
        }
        for (std::size_t node = 0; node < nodes; ++node)
            first_[node + 1] += first_[node];
        std::vector<std::size_t> place(first_.begin(), first_.end() - 1);
        for (std::uint32_t edge = 0; edge < to_.size(); ++edge)
            at_[place[to_[edge ^ 1]]++] = edge;
    }

    void saturate(std::uint32_t source, std::uint32_t sink) {
        while (reach(source), depth_[sink] >= 0) {
            std::copy(first_.begin(), first_.end() - 1, next_.begin());
            while (push(source, sink))
                ;
        }
    }

    std::vector<std::int64_t> reached() const {
        std::vector<std::int64_t> found(depth_.size());
        for (std::size_t node = 0; node < found.size(); ++node)
            found[node] = depth_[node] >= 0;
        return found;
    }

  private:
    void reach(std::uint32_t source) {
        std::ranges::fill(depth_, -1);
        depth_[source] = 0;
        std::vector<std::uint32_t> queue{source};
        for (std::size_t i = 0; i < queue.size(); ++i)
            for (std::size_t k = first_[queue[i]]; k < first_[queue[i] + 1]; ++k)
                if (const std::uint32_t to = to_[at_[k]]; left_[at_[k]] > 0 && depth_[to] < 0) {
                    depth_[to] = depth_[queue[i]] + 1;
                    queue.push_back(to);
                }
    }

    /// Pushes the capacity of one path, without recursion; returns whether there was a path.
    bool push(std::uint32_t source, std::uint32_t sink) {
        std::vector<std::uint32_t> path;
        std::uint32_t node = source;
        while (node != sink) {
            if (next_[node] < first_[node + 1]) {
                const std::uint32_t edge = at_[next_[node]];
                if (left_[edge] > 0 && depth_[to_[edge]] == depth_[node] + 1) {
                    path.push_back(edge);
                    node = to_[edge];
                } else {
                    ++next_[node];
                }
            } else if (path.empty()) {
                return false;
            } else {
                node = to_[path.back() ^ 1];
                path.pop_back();
                ++next_[node];
            }
        }
        std::int64_t amount = std::numeric_limits<std::int64_t>::max();
        for (const std::uint32_t edge : path)
            amount = std::min(amount, left_[edge]);
        for (const std::uint32_t edge : path) {
            left_[edge] -= amount;
            left_[edge ^ 1] += amount;
        }
        return true;
    }

    std::vector<std::size_t> first_;
    std::vector<std::uint32_t> at_, to_;
    std::vector<std::int64_t> left_;
    std::vector<std::int32_t> depth_;
    std::vector<std::size_t> next_;
};

} // namespace

std::vector<std::int64_t> min_cut(std::size_t nodes, const Edges &edges,
                                  std::span<const std::int64_t> capacity, std::size_t source,
                                  std::size_t sink) {
    Network network(nodes, edges, capacity);
    network.saturate(static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(sink));
    return network.reached();
}

} // namespace tightship::flow
