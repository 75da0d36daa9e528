/// Rounds of work in parts by members of which some come late or not before the end. Exits with 0
/// if every part was done once, in its round.
#include "relay.hpp"

#include <chrono>
#include <cstdio>
#include <vector>

using tightship::kernels::Relay;

namespace {

constexpr int64_t kRounds = 200;
std::atomic<int> wrong = 0;

void expect(bool holds) {
    if (!holds)
        ++wrong;
}

/// Runs members of which `late` ones begin when the first has finished.
void race(int64_t members, int64_t late) {
    std::vector<int64_t> room(static_cast<size_t>(Relay::size_bytes(members)) / sizeof(int64_t));
    Relay relay(reinterpret_cast<char *>(room.data()), members);
    relay.reset();
    // The last round that each part was done in, of even and of odd rounds, which are written
    // while those before are read. Plain numbers: a missing order is a race.
    std::vector<int64_t> done[2] = {std::vector<int64_t>(static_cast<size_t>(members), -2),
                                    std::vector<int64_t>(static_cast<size_t>(members), -1)};
    const auto walk = [&](int64_t member) {
        for (int64_t round = 0; round < kRounds; ++round)
            relay.run(member, round, [&](int64_t part, int64_t parts) {
                expect(parts == members);
                const std::vector<int64_t> &before = done[(round + 1) % 2];
                for (const int64_t each : before)
                    expect(each == round - 1);
                if ((round + part) % 3 == 0) // others get on meanwhile, as far as they may
                    std::this_thread::sleep_for(std::chrono::microseconds(1));
                done[round % 2][static_cast<size_t>(part)] += 2;
            });
    };
    std::vector<std::thread> threads;
    for (int64_t member = 1; member < members - late; ++member)
        threads.emplace_back(walk, member);
    walk(0);
    for (const int64_t each : done[(kRounds - 1) % 2])
        expect(each == kRounds - 1);
    for (int64_t member = members - late; member < members; ++member)
        walk(member);
    for (std::thread &thread : threads)
        thread.join();
}

} // namespace

int main() {
    for (int64_t members = 1; members <= 4; ++members)
        for (int64_t late = 0; late < members; ++late)
            race(members, late);
    std::printf("%d wrong\n", wrong.load());
    return wrong.load() == 0 ? 0 : 1;
}
