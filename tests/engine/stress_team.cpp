/// Regions of many sizes from several callers at once, with and without barriers, for a
/// sanitizer to watch. Ends with 0 if every sum was right.
#include "openmp.hpp"

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kRegions = 300;
std::atomic<int> wrong = 0;

struct Region {
    std::vector<int> first, second; ///< by ticket; plain, so that a missing order is a race
};

void with_barrier(void *data) {
    Region &region = *static_cast<Region *>(data);
    const int ticket = tsm_get_thread_num();
    region.first[ticket] = ticket;
    TSMP_barrier();
    for (const int each : region.first)
        region.second[ticket] += each;
}

struct Meeting {
    std::atomic<int> arrived;
    Region region;
};

/// Tickets that wait for each other in a loop of their own.
void with_loop(void *data, int ticket) {
    auto &[arrived, region] = *static_cast<Meeting *>(data);
    const int count = static_cast<int>(region.first.size());
    for (arrived.fetch_add(1); arrived.load() < count;)
        std::this_thread::yield();
    region.second[ticket] = count * (count - 1) / 2;
}

void check(const Region &region, int count) {
    for (const int sum : region.second)
        if (sum != count * (count - 1) / 2)
            ++wrong;
}

void call_regions(int seed) {
    for (int index = 0; index < kRegions; ++index) {
        const int count = 1 + (index + seed) % 5;
        Region region{std::vector<int>(count), std::vector<int>(count)};
        TSMP_parallel(with_barrier, &region, static_cast<unsigned>(count), 0);
        check(region, count);
        Region tickets{std::vector<int>(count), std::vector<int>(count)};
        const auto run = [](void *data, int ticket) {
            Region &each = *static_cast<Region *>(data);
            each.second[ticket] =
                static_cast<int>(each.second.size() * (each.second.size() - 1)) / 2;
        };
        tsm_run(count, run, &tickets);
        check(tickets, count);
        Meeting meeting{0, {std::vector<int>(count), std::vector<int>(count)}};
        tsm_meet(1);
        tsm_run(count, with_loop, &meeting);
        tsm_meet(0);
        check(meeting.region, count);
        if (index % 50 == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

} // namespace

int main() {
    std::vector<std::thread> callers;
    for (int seed = 0; seed < 4; ++seed)
        callers.emplace_back(call_regions, seed);
    for (std::thread &caller : callers)
        caller.join();
    if (wrong != 0)
        std::fprintf(stderr, "%d sums are wrong\n", wrong.load());
    return wrong == 0 ? 0 : 1;
}
