#include "team.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tightship::omp {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr size_t kStackBytes = 1 << 20;
constexpr uint32_t kNext = 1 << 16; ///< increment of `next` in `Team::tickets_`
constexpr int kPausesPerLook = 32;  ///< steps of a spin between two reads of the clock

constexpr Nanoseconds kIdleSpin = microseconds(200);  ///< of a worker without a ticket
constexpr Nanoseconds kFirstLook = microseconds(25);  ///< of a caller, until it checks progress
constexpr Nanoseconds kPatience = microseconds(1000); ///< of a caller whose workers progress
constexpr Nanoseconds kNap = milliseconds(1);
constexpr int kAnswerMilliseconds = 1;

/// Spins until `is_over()` or `limit` has passed; returns whether it is over.
template <class Condition> bool spin(Nanoseconds limit, const Condition &is_over) {
    for (Nanoseconds end{};;) {
        for (int step = 0; step < kPausesPerLook; ++step) {
            if (is_over())
                return true;
            pause();
        }
        const Nanoseconds time = now();
        if (end == Nanoseconds{})
            end = time + limit;
        if (time >= end)
            return false;
    }
}

} // namespace

thread_local constinit Place place;

Team::Team() : caller_id_(static_cast<int>(syscall(SYS_gettid))) {
    look_around();
}

Team::~Team() {
    stop_.store(true);
    for (const auto &worker : workers_) {
        worker->asleep.store(0);
        wake(worker->asleep, 1);
    }
    for (const auto &worker : workers_)
        pthread_join(worker->thread, nullptr);
}

void Team::start(int count, Call call, void *data, bool meet) {
    call_ = call;
    data_ = data;
    count_ = count;
    invited_ = 0;
    finished_.store(0, std::memory_order_relaxed);
    place = {this, 0, count, true};
    if (meet) {
        for (const auto &worker : workers_) {
            look_around();
            keep_off(*worker, sched_getcpu()); // where the caller may have called it to
        }
        is_open_.store(true, std::memory_order_relaxed);
        invite_all();
        return;
    }
    if (solitude_.lasts())
        return;
    if (processor_count_ == 1) {
        look_around();
        solitude_.begin();
        return;
    }
    if (is_held_.exchange(false, std::memory_order_relaxed) && !workers_.empty())
        move_caller(sched_getcpu());
    is_open_.store(true, std::memory_order_relaxed);
    invite(std::min(count, processor_count_) - 1);
}

void Team::finish() {
    int left = count_ - 1;
    if (invited_ > 0) {
        for (int ticket; (ticket = claim()) != 0; --left)
            run(ticket);
        await(static_cast<uint32_t>(left));
        is_open_.store(false, std::memory_order_relaxed);
    } else {
        for (int ticket = 1; ticket < count_; ++ticket)
            run(ticket);
    }
}

void Team::run(int ticket) {
    place.ticket = ticket;
    call_(data_, ticket);
}

/// Offers all tickets but the caller's to workers, and makes sure that `count` of them are awake.
void Team::invite(int count) {
    while (static_cast<int>(workers_.size()) < count && hire()) {
    }
    const int processor = sched_getcpu();
    if (processor != caller_processor_.load(std::memory_order_relaxed))
        caller_processor_.store(processor, std::memory_order_relaxed);
    if (invited_ == 0)
        tickets_.store(kNext | static_cast<uint32_t>(count_));
    invited_ = count;
    for (size_t index = 0; index < std::min<size_t>(count, workers_.size()); ++index) {
        Worker &worker = *workers_[index];
        if (worker.asleep.load() == 0)
            continue;
        look_around();
        keep_off(worker, processor);
        worker.asleep.store(0);
        wake(worker.asleep, 1);
    }
}

/// Makes sure that there is a thread for each ticket, on any processor, because tickets wait for
/// each other.
void Team::invite_all() {
    if (invited_ < count_ - 1)
        invite(count_ - 1);
    if (static_cast<int>(workers_.size()) < count_ - 1) {
        std::fputs("tightship: the system has no threads left for a region that needs them.\n",
                   stderr);
        std::abort();
    }
}

/// Reads which processors the caller may use; they may change at any time.
void Team::look_around() {
    const cpu_set_t allowed = allowed_processors();
    if (CPU_EQUAL(&allowed, &processors_))
        return;
    processors_ = allowed;
    const int allowed_count = CPU_COUNT(&allowed);
    processor_count_ = allowed_count == 0 ? kMaxCount : allowed_count;
    for (const auto &worker : workers_)
        worker->excluded = -1;
}

/// Claims the next ticket of the open region, which the calling thread then has to run; 0 if none.
int Team::claim() {
    uint32_t word = tickets_.load(std::memory_order_acquire);
    while (word / kNext < word % kNext)
        if (tickets_.compare_exchange_weak(word, word + kNext, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
            return static_cast<int>(word / kNext);
    return 0;
}

bool Team::hire() {
    auto worker = std::make_unique<Worker>(*this);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&worker->thread, &attributes, &Team::work, worker.get());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    if (error == 0)
        workers_.push_back(std::move(worker));
    return error == 0;
}

void *Team::work(void *argument) {
    Worker &worker = *static_cast<Worker *>(argument);
    Team &team = worker.team;
    pthread_setname_np(pthread_self(), "tightship");
    worker.thread_id.store(static_cast<int>(syscall(SYS_gettid)));
    while (!team.stop_.load(std::memory_order_acquire)) {
        team.answer_caller();
        worker.has_ticket.store(true, std::memory_order_relaxed);
        if (const int ticket = team.claim()) {
            place = {&team, ticket, team.count_, true};
            team.call_(team.data_, ticket);
            place = {};
            worker.has_ticket.store(false, std::memory_order_relaxed);
            team.finished_.fetch_add(1);
            if (team.caller_asleep_.load() != 0)
                wake(team.finished_, 1);
        } else {
            worker.has_ticket.store(false, std::memory_order_relaxed);
            team.idle(worker);
        }
    }
    return nullptr;
}

/// Spins, then sleeps, until there may be work.
void Team::idle(Worker &worker) {
    const auto is_over = [this] {
        const uint32_t word = tickets_.load();
        return word / kNext < word % kNext || stop_.load() || is_called_.load();
    };
    if (sched_getcpu() != caller_processor_.load(std::memory_order_relaxed)) {
        if (spin(kIdleSpin, is_over))
            return;
        if (is_caller_held())
            is_held_.store(true, std::memory_order_relaxed);
    }
    worker.asleep.store(1);
    if (is_over())
        worker.asleep.store(0);
    while (worker.asleep.load() != 0)
        sleep_while(worker.asleep, 1, std::nullopt);
}

/// Returns whether another process has taken the caller's processor in the middle of a region.
bool Team::is_caller_held() {
    if (!is_open_.load(std::memory_order_relaxed) || caller_asleep_.load() != 0)
        return false;
    const Nanoseconds used = processor_time(caller_id_);
    spin(kFirstLook, [] { return false; });
    return is_open_.load(std::memory_order_relaxed) && processor_time(caller_id_) == used;
}

/// Makes the system move the caller to the processor of a worker, off one that it has to share.
///
/// A thread that reads a pipe is woken beside the one that writes it: Linux expects the writer to
/// wait next. The caller's affinity is not ours to set.
void Team::move_caller(int processor) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        return;
    Worker &worker = *workers_.front();
    answer_ = ends[1];
    is_called_.store(true);
    if (worker.asleep.load() != 0) {
        keep_off(worker, processor);
        worker.asleep.store(0);
        wake(worker.asleep, 1);
    }
    pollfd answered{ends[0], POLLIN, 0};
    char byte = 0;
    const bool is_late = poll(&answered, 1, kAnswerMilliseconds) <= 0 && is_called_.exchange(false);
    while (!is_late && read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
    close(ends[0]);
    close(ends[1]);
}

void Team::answer_caller() {
    if (is_called_.load() && is_called_.exchange(false) && write(answer_, "", 1) != 1)
        assert(false);
}

/// Forbids a worker only the processor of its caller, because the system prefers to wake a thread
/// on the processor of the thread that wakes it.
void Team::keep_off(Worker &worker, int processor) {
    if (worker.excluded == processor)
        return;
    cpu_set_t others = processors_;
    CPU_CLR(processor, &others);
    if (CPU_COUNT(&others) == 0)
        return;
    limit_thread(worker.thread_id.load(), others);
    worker.excluded = processor;
}

/// Returns when workers have run `finished` tickets.
///
/// A worker whose processor time stands still has lost its processor to another process. It is
/// called to the processor of its caller, which sleeps meanwhile: the region then takes the time of
/// one thread, not a time slice of the system's.
void Team::await(uint32_t finished) {
    const auto is_over = [&] { return finished_.load(std::memory_order_acquire) == finished; };
    if (spin(kFirstLook, is_over))
        return;
    stalled();
    bool is_asleep = false, has_stalled = false;
    for (Nanoseconds waited{};; waited += kFirstLook) {
        if (is_asleep)
            sleep_until(finished, kNap);
        if (is_asleep ? is_over() : spin(kFirstLook, is_over))
            break;
        if (Worker *worker = stalled()) {
            call_here(*worker);
            has_stalled = true;
        }
        is_asleep = has_stalled || waited >= kPatience;
    }
    if (has_stalled)
        solitude_.begin();
}

void Team::call_here(Worker &worker) {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    limit_thread(worker.thread_id.load(), here);
    worker.excluded = -1;
}

/// Sleeps until a worker is done with a ticket, at most `limit`.
void Team::sleep_until(uint32_t finished, Nanoseconds limit) {
    caller_asleep_.store(1);
    const uint32_t seen = finished_.load();
    if (seen != finished)
        sleep_while(finished_, seen, limit);
    caller_asleep_.store(0);
}

/// Returns a worker with a ticket that has used no processor time since the last call; null if
/// none.
Team::Worker *Team::stalled() {
    Worker *found = nullptr;
    for (const auto &worker : workers_) {
        if (!worker->has_ticket.load(std::memory_order_relaxed))
            continue;
        const Nanoseconds used = processor_time(worker->thread_id.load());
        if (used == worker->seen)
            found = worker.get();
        worker->seen = used;
    }
    return found;
}

void Team::barrier() {
    if (place.ticket == 0)
        invite_all();
    const uint32_t passed = barriers_passed_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(count_)) {
        arrived_.store(0, std::memory_order_relaxed);
        barriers_passed_.fetch_add(1);
        wake(barriers_passed_, INT_MAX);
        return;
    }
    const auto is_over = [&] { return barriers_passed_.load(std::memory_order_acquire) != passed; };
    if (spin(kIdleSpin, is_over))
        return;
    while (!is_over())
        sleep_while(barriers_passed_, passed, std::nullopt);
}

} // namespace tightship::omp
