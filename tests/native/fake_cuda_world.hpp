/// State of the driver of `fake_cuda.cpp`: chunks, addresses, streams and events, and calls to
/// refuse.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoContext = 201, kAlreadyMapped = 208,
              kNotReady = 600, kUnknown = 999;
constexpr int kDevices = 2;

struct Chunk {
    size_t offset, bytes;
    int uses; // its handle, and each place it is mapped at
    bool has_handle;
};
struct Mapping {
    size_t bytes;
    uint64_t handle;
};
/// Work that has to end first: the number of times that each stream must have been finished.
using Point = std::map<void *, uint64_t>;
struct Refusal {
    long first = 0, count = 0, seen = 0;
};

struct World {
    std::mutex mutex;
    std::condition_variable finished;
    int file = memfd_create("device", 0);
    size_t file_bytes = 0, used_bytes = 0, total_bytes = size_t{1} << 40, granularity = 4096;
    bool can_map = true, grows_elsewhere = false;
    int retained[kDevices] = {};
    uint64_t next_handle = 1;
    std::map<uint64_t, Chunk> chunks;
    std::map<std::pair<size_t, size_t>, int> free_parts; // of the file: bytes, offset
    std::map<uint64_t, size_t> reserved;
    std::map<uint64_t, Mapping> mapped;
    std::map<std::string, Refusal> refusals;
    std::map<std::string, long> calls;
    std::map<void *, uint64_t> busy_until; // work that is not done, by stream
    std::map<void *, uint64_t> finish_count;
    std::map<void *, Point> waits;
    std::map<void *, Point> events;
    uintptr_t next_event = 1;
    long misuses = 0;
};

World &world() {
    static World *const it = new World;
    return *it;
}
thread_local std::vector<void *> contexts;

/// Lock of a call, and the reason for which the call is refused before it begins.
struct Call {
    std::unique_lock<std::mutex> lock{world().mutex};
    int refusal = 0;

    explicit Call(const char *name, bool needs_context = true) {
        world().calls[name]++;
        for (const char *key : {name, "any"}) {
            auto &it = world().refusals[key];
            const long number = it.seen++;
            if (number >= it.first && number < it.first + it.count)
                refusal = kUnknown;
        }
        if (needs_context && contexts.empty())
            refusal = kNoContext;
    }
};

int misuse(int result = kInvalidValue) {
    world().misuses++;
    return result;
}

void leave(std::map<uint64_t, Chunk>::iterator it) {
    Chunk &chunk = it->second;
    if (--chunk.uses > 0)
        return;
    fallocate(world().file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(chunk.offset), static_cast<off_t>(chunk.bytes));
    world().free_parts[{chunk.bytes, chunk.offset}] = 1;
    world().used_bytes -= chunk.bytes;
    world().chunks.erase(it);
}

/// Returns whether one reservation contains the range.
bool is_reserved(uint64_t start, size_t bytes) {
    auto it = world().reserved.upper_bound(start);
    if (it == world().reserved.begin())
        return false;
    --it;
    return start + bytes <= it->first + it->second;
}

bool touches_mapped(uint64_t start, size_t bytes) {
    auto it = world().mapped.lower_bound(start + bytes);
    if (it == world().mapped.begin())
        return false;
    --it;
    return it->first + it->second.bytes > start;
}

/// Returns whether chunks lie exactly within `[start, start + bytes)`, without gaps.
bool is_whole(uint64_t start, size_t bytes) {
    uint64_t at = start;
    while (at < start + bytes) {
        const auto it = world().mapped.find(at);
        if (it == world().mapped.end())
            return false;
        at += it->second.bytes;
    }
    return at == start + bytes;
}

bool is_done(const Point &point) {
    for (const auto &[stream, count] : point)
        if (world().finish_count[stream] < count)
            return false;
    return true;
}

/// Returns the work that has to end before all work of a stream is done.
Point point_of(void *stream) {
    Point point = world().waits[stream];
    if (const uint64_t until = world().busy_until[stream])
        point[stream] = std::max(point[stream], until);
    return point;
}

} // namespace
