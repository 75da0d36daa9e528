/// A CUDA driver without a device: the calls of virtual memory, over a file in memory, with a
/// device that does its work when it is told to. `fake_*` are for tests.
///
/// It is as strict as the real one's documentation: memory is out of reach before `cuMemSetAccess`,
/// one call unmaps one chunk, no call spans two reservations, and what makes something needs a
/// context that is the calling thread's.
#include "fake_cuda_world.hpp"

#include <exception>

extern "C" {

int cuInit(unsigned) {
    return Call("init", false).refusal;
}
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal < kDevices ? 0 : 101;
}
int cuDeviceGetCount(int *count) {
    *count = kDevices;
    return 0;
}
int cuDeviceGetAttribute(int *value, int, int) {
    *value = world().can_map;
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int) {
    *bytes = world().total_bytes;
    return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    const Call call("retain", false);
    *context = &world().retained[device];
    world().retained[device] += call.refusal == 0;
    return call.refusal;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    const Call call("primary_release", false);
    return --world().retained[device] < 0 ? misuse() : 0;
}
int cuCtxPushCurrent_v2(void *context) {
    const Call call("push", false);
    if (call.refusal == 0)
        contexts.push_back(context);
    return call.refusal;
}
int cuCtxPopCurrent_v2(void **context) {
    const Call call("pop", false);
    if (contexts.empty())
        return misuse(kNoContext);
    *context = contexts.back();
    contexts.pop_back();
    return 0;
}
int cuMemGetAllocationGranularity(size_t *bytes, const void *, int) {
    *bytes = world().granularity;
    return 0;
}

int cuMemAddressReserve(uint64_t *start, size_t bytes, size_t alignment, uint64_t wanted,
                        unsigned long long) {
    const Call call("reserve");
    if (call.refusal != 0)
        return call.refusal;
    World &it = world();
    if (bytes == 0 || bytes % it.granularity != 0)
        return misuse();
    alignment = std::max(alignment, it.granularity);
    constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *got = MAP_FAILED;
    if (wanted != 0 && !it.grows_elsewhere)
        got = mmap(reinterpret_cast<void *>(wanted), bytes, PROT_NONE, kind | MAP_FIXED_NOREPLACE,
                   -1, 0);
    uint64_t at = reinterpret_cast<uint64_t>(got);
    if (got == MAP_FAILED) {
        got = mmap(nullptr, bytes + alignment, PROT_NONE, kind, -1, 0);
        if (got == MAP_FAILED)
            return kOutOfMemory;
        const uint64_t first = reinterpret_cast<uint64_t>(got);
        at = (first + alignment - 1) & ~(alignment - 1);
        if (at > first)
            munmap(got, at - first);
        if (first + alignment > at)
            munmap(reinterpret_cast<void *>(at + bytes), first + alignment - at);
    }
    it.reserved[at] = bytes;
    *start = at;
    return 0;
}
int cuMemAddressFree(uint64_t start, size_t bytes) {
    const Call call("address_free", false);
    if (call.refusal != 0)
        return call.refusal;
    const auto it = world().reserved.find(start);
    if (it == world().reserved.end() || it->second != bytes || touches_mapped(start, bytes))
        return misuse();
    munmap(reinterpret_cast<void *>(start), bytes);
    world().reserved.erase(it);
    return 0;
}

int cuMemCreate(uint64_t *handle, size_t bytes, const int *properties, unsigned long long) {
    const Call call("create");
    if (call.refusal != 0)
        return call.refusal;
    World &it = world();
    const bool is_pinned_here =
        properties[0] == 1 && properties[2] == 1 && properties[3] < kDevices;
    if (bytes == 0 || bytes % it.granularity != 0 || !is_pinned_here)
        return misuse();
    if (bytes > it.total_bytes - it.used_bytes)
        return kOutOfMemory;
    size_t offset = it.file_bytes;
    const auto part = it.free_parts.lower_bound({bytes, 0});
    if (part != it.free_parts.end() && part->first.first == bytes) {
        offset = part->first.second;
        it.free_parts.erase(part);
    } else if (ftruncate(it.file, static_cast<off_t>(it.file_bytes += bytes)) != 0) {
        return kOutOfMemory;
    }
    it.used_bytes += bytes;
    *handle = it.next_handle++;
    it.chunks[*handle] = {offset, bytes, 1, true};
    return 0;
}
int cuMemRelease(uint64_t handle) {
    const Call call("release", false);
    if (call.refusal != 0)
        return call.refusal;
    const auto it = world().chunks.find(handle);
    if (it == world().chunks.end() || !it->second.has_handle)
        return misuse();
    it->second.has_handle = false;
    leave(it);
    return 0;
}
int cuMemMap(uint64_t start, size_t bytes, size_t offset, uint64_t handle, unsigned long long) {
    const Call call("map");
    if (call.refusal != 0)
        return call.refusal;
    const auto it = world().chunks.find(handle);
    if (it == world().chunks.end() || it->second.bytes != bytes || offset != 0 ||
        start % world().granularity != 0 || !is_reserved(start, bytes))
        return misuse();
    if (touches_mapped(start, bytes))
        return misuse(kAlreadyMapped);
    if (mmap(reinterpret_cast<void *>(start), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
             world().file, static_cast<off_t>(it->second.offset)) == MAP_FAILED)
        return kOutOfMemory;
    it->second.uses++;
    world().mapped[start] = {bytes, handle};
    return 0;
}
int cuMemUnmap(uint64_t start, size_t bytes) {
    const Call call("unmap");
    if (call.refusal != 0)
        return call.refusal;
    const auto it = world().mapped.find(start);
    if (it == world().mapped.end() || it->second.bytes != bytes)
        return misuse();
    mmap(reinterpret_cast<void *>(start), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    leave(world().chunks.find(it->second.handle));
    world().mapped.erase(it);
    return 0;
}
int cuMemSetAccess(uint64_t start, size_t bytes, const int *access, size_t count) {
    const Call call("set_access");
    if (call.refusal != 0)
        return call.refusal;
    if (!is_whole(start, bytes) || !is_reserved(start, bytes) || count != 1 || access[0] != 1 ||
        access[2] != 3)
        return misuse();
    const auto address = reinterpret_cast<void *>(start);
    return mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0 ? 0 : kUnknown;
}

int cuEventCreate(void **event, unsigned) {
    const Call call("event_create");
    if (call.refusal != 0)
        return call.refusal;
    *event = reinterpret_cast<void *>(world().next_event++ << 4);
    world().events[*event];
    return 0;
}
int cuEventRecord(void *event, void *stream) {
    const Call call("event_record");
    if (call.refusal != 0)
        return call.refusal;
    if (world().events.count(event) == 0)
        return misuse();
    world().events[event] = point_of(stream);
    return 0;
}
int cuEventQuery(void *event) {
    const Call call("event_query");
    if (call.refusal != 0)
        return call.refusal;
    return is_done(world().events.at(event)) ? 0 : kNotReady;
}
int cuEventSynchronize(void *event) {
    Call call("event_synchronize");
    world().finished.wait(call.lock, [&] { return is_done(world().events.at(event)); });
    return 0;
}
int cuEventDestroy_v2(void *event) {
    const Call call("event_destroy", false);
    return world().events.erase(event) == 1 ? call.refusal : misuse();
}
int cuStreamSynchronize(void *stream) {
    Call call("stream_synchronize");
    const Point point = point_of(stream);
    world().finished.wait(call.lock, [&] { return is_done(point); });
    return 0;
}
int cuStreamWaitEvent(void *stream, void *event, unsigned) {
    const Call call("stream_wait_event");
    if (call.refusal != 0)
        return call.refusal;
    for (const auto &[other, count] : world().events.at(event))
        world().waits[stream][other] = std::max(world().waits[stream][other], count);
    return 0;
}
int cuGetErrorString(int result, const char **text) {
    *text = result == kUnknown ? "it was told to" : "a mistake";
    return 0;
}

/// Refuses `count` calls of a function from number `first` on, counted from now; "any" means all
/// functions.
void fake_refuse(const char *name, long first, long count) {
    const std::lock_guard lock(world().mutex);
    world().refusals[name] = {first, count, 0};
}
/// Returns the calls of a function so far; or how many there are of "chunks", "reserved", "mapped",
/// "events", "contexts", "misuses", and, for "depth", of the calling thread's contexts.
long fake_count(const char *name) {
    const std::lock_guard lock(world().mutex);
    World &it = world();
    const std::map<std::string, long> counts = {
        {"chunks", it.chunks.size()},
        {"reserved", it.reserved.size()},
        {"mapped", it.mapped.size()},
        {"events", it.events.size()},
        {"contexts", it.retained[0] + it.retained[1]},
        {"misuses", it.misuses},
        {"depth", contexts.size()},
    };
    const auto found = counts.find(name);
    return found != counts.end() ? found->second : it.calls[name];
}
/// Sets "granularity", "total_bytes", "can_map" or "grows_elsewhere".
void fake_set(const char *name, size_t value) {
    const std::lock_guard lock(world().mutex);
    const std::string which = name;
    if (which == "granularity")
        world().granularity = value;
    else if (which == "total_bytes")
        world().total_bytes = value;
    else if (which == "can_map")
        world().can_map = value != 0;
    else if (which == "grows_elsewhere")
        world().grows_elsewhere = value != 0;
}
/// Gives the stream work that lasts until `fake_finish`.
void fake_begin(void *stream) {
    const std::lock_guard lock(world().mutex);
    world().busy_until[stream] = world().finish_count[stream] + 1;
}
void fake_finish(void *stream) {
    const std::lock_guard lock(world().mutex);
    world().finish_count[stream]++;
    world().busy_until[stream] = 0;
    world().finished.notify_all();
}

/// Calls an allocator as a framework of C++ does; writes the text of its exception to `text`.
void fake_thrown(void *(*allocate)(ssize_t, int, void *), ssize_t bytes, int device, char *text,
                 size_t text_bytes) {
    try {
        allocate(bytes, device, nullptr);
    } catch (const std::exception &error) {
        strncpy(text, error.what(), text_bytes - 1);
    }
}

} // extern "C"
