#include "tightship/driver/ring.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <utility>

namespace tightship::driver {

namespace {

/// Time to poll for a reply. Waking up takes tens of microseconds.
constexpr std::chrono::microseconds kLook(150);

/// Duration of a yield above which another thread has used the processor.
constexpr std::chrono::microseconds kWanted(15);

/// Most calls that are made without polling, after polling in vain.
constexpr int kPassesMax = 64;

bool has_other_processors() {
    static const bool has_others = std::thread::hardware_concurrency() > 1;
    return has_others;
}

std::atomic_ref<uint32_t> word(char *start) {
    return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t *>(start));
}

} // namespace

bool Looking::goes_on() {
    std::this_thread::yield();
    const auto now = Clock::now();
    const bool was_wanted = now - std::exchange(latest_, now) > kWanted;
    return now < until_ && !was_wanted;
}

Ring::Ring(int file) {
    void *start = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "mmap");
    start_ = static_cast<char *>(start);
}

Ring::~Ring() {
    munmap(start_, kRingBytes);
}

RingState Ring::state() const {
    return RingState{word(start_).load()};
}

bool Ring::pass(RingState from, RingState to) const {
    auto expected = static_cast<uint32_t>(from);
    return word(start_).compare_exchange_strong(expected, static_cast<uint32_t>(to));
}

RingState Ring::set(RingState to) const {
    return RingState{word(start_).exchange(static_cast<uint32_t>(to))};
}

char *Ring::slot(Side side, size_t position) const {
    const size_t index = 2 * (position % kRingSlots) + static_cast<size_t>(side);
    return start_ + kRingHeadBytes + index * kSlotBytes;
}

void Ring::write(Side side, size_t position, std::string_view text) const {
    char *place = slot(side, position);
    word(place).store(static_cast<uint32_t>(text.size()));
    text.copy(place + sizeof(uint32_t), kSlotTextMax);
}

std::string_view Ring::read(Side side, size_t position, Copy &copy) const {
    char *place = slot(side, position);
    const size_t size = word(place).load();
    if (size > copy.size())
        return {};
    std::memcpy(copy.data(), place + sizeof(uint32_t), size);
    return {copy.data(), size};
}

bool RingCaller::looks() {
    if (passes_ > 0 || !has_other_processors()) {
        passes_ -= passes_ > 0 ? 1 : 0;
        return false;
    }
    Looking looking(kLook);
    while (ring_.state() == RingState::kCalled && looking.goes_on())
        continue;
    const bool is_vain = ring_.state() == RingState::kCalled;
    passes_next_ = is_vain ? std::min(2 * passes_next_, kPassesMax) : 1;
    passes_ = is_vain ? passes_next_ : 0;
    return !is_vain;
}

std::optional<std::string> RingCaller::call(std::string_view message) {
    if (message.size() > kSlotTextMax || ring_.state() != RingState::kAttended)
        return {};
    ring_.write(Side::kCall, position_, message);
    if (!ring_.pass(RingState::kAttended, RingState::kCalled))
        return {};
    const size_t position = position_++;
    if (!looks() && ring_.pass(RingState::kCalled, RingState::kAsleep))
        return std::string();
    Ring::Copy copy;
    const std::string_view answer = ring_.read(Side::kAnswer, position, copy);
    if (answer.empty() || answer == kElsewhere)
        return {};
    return std::string(answer);
}

} // namespace tightship::driver
