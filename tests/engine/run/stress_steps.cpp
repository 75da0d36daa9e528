/// Runs of random step graphs from several callers at once, with delays, errors and stops, for a
/// sanitizer to watch. Ends with 0 if every step ran once, after those that it waits for.
#include "tightship/run/step_graph.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using tightship::StepGraph;
using tightship::StepRun;
using Edges = std::vector<std::pair<int64_t, int64_t>>;

constexpr int kGraphs = 12, kRuns = 25, kCallers = 3;
constexpr size_t kFirst = 5, kSteps = 40;
std::atomic<int> wrong = 0;

/// One run; plain numbers, so that a missing order is a race.
struct Run {
    const StepGraph &graph;
    const std::vector<std::vector<size_t>> &before;
    std::vector<int> ended;
    size_t failing; ///< step that throws; none if it is past the last
    int looks;      ///< times that the run may go on
    std::atomic<unsigned> noise;

    void execute(size_t step) {
        const unsigned seed = noise.fetch_add(0x9E3779B9u) * 2654435761u;
        if (seed % 16 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(seed % 200));
        for (unsigned spin = 0; spin < seed % 2000; ++spin)
            std::atomic_signal_fence(std::memory_order_seq_cst);
        if (step == failing)
            throw std::runtime_error("as asked");
        for (const size_t other : before[step])
            if (ended[other] != 1)
                ++wrong;
        ++ended[step];
    }
};

void call(int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    for (int index = 0; index < kGraphs; ++index) {
        Edges edges;
        std::vector<std::vector<size_t>> before(kSteps);
        for (size_t after = 1; after < kSteps; ++after)
            for (size_t count = random() % 3; count > 0; --count) {
                const size_t other = random() % after;
                if (std::ranges::find(before[after], other) == before[after].end()) {
                    before[after].push_back(other);
                    edges.emplace_back(kFirst + other, kFirst + after);
                }
            }
        std::vector<uint32_t> order(kSteps);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::shuffle(order, random);
        const StepGraph graph(kFirst, kFirst + kSteps, edges,
                              index % 2 ? std::span<const uint32_t>(order)
                                        : std::span<const uint32_t>());
        StepRun steps(graph);
        for (int turn = 0; turn < kRuns; ++turn) {
            const bool fails = turn % 5 == 3, stops = turn % 5 == 4;
            Run run{graph,
                    before,
                    std::vector<int>(kSteps),
                    fails ? random() % kSteps : kSteps,
                    stops ? static_cast<int>(random() % 10) : 1 << 30,
                    {random()}};
            const auto execute = [](void *data, size_t step) {
                static_cast<Run *>(data)->execute(step - kFirst);
            };
            const auto look = [](void *data) { return --static_cast<Run *>(data)->looks >= 0; };
            bool is_done = false, has_failed = false;
            try {
                is_done = steps.run(1 + turn % 4, &run, execute, look);
            } catch (const std::runtime_error &) {
                has_failed = true;
            }
            const bool is_whole = std::ranges::all_of(run.ended, [](int n) { return n == 1; });
            if (has_failed != fails || (is_done && !is_whole) || (!fails && !stops && !is_done) ||
                std::ranges::any_of(run.ended, [](int n) { return n > 1; }))
                ++wrong;
        }
    }
}

} // namespace

int main() {
    std::vector<std::thread> callers;
    for (int seed = 0; seed < kCallers; ++seed)
        callers.emplace_back(call, seed);
    for (std::thread &caller : callers)
        caller.join();
    if (wrong != 0)
        std::fprintf(stderr, "%d checks failed\n", wrong.load());
    return wrong == 0 ? 0 : 1;
}
