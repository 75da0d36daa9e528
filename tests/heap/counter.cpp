/// Counts the allocations of every thread of a process from the heap; preloaded before libc.
///
/// An allocation's owner is the shared object of the innermost frame outside of allocators:
/// allocations by the C++ runtime's `operator new` count for its caller.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <malloc.h>

extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
}

namespace {

constexpr size_t kLarge = 4096;
constexpr int kFrames = 24;
constexpr int kOwners = 32;
constexpr int kKept = 8;

struct Owner {
    char name[64];
    long count, bytes, large;
};

std::atomic<bool> counting{false};
std::atomic<long> live_bytes{0};
thread_local bool inside = false;
Owner owners[kOwners];
void *kept[kKept][kFrames];
int kept_depth[kKept];
int kept_count = 0;

bool is_allocator(const char *name) {
    for (const char *part : {"heap_counter", "libstdc++", "libc.so", "libgcc", "ld-linux"})
        if (std::strstr(name, part) != nullptr)
            return true;
    return false;
}

const char *file_of(void *address) {
    Dl_info info;
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr)
        return "generated code";
    const char *slash = std::strrchr(info.dli_fname, '/');
    return slash != nullptr ? slash + 1 : info.dli_fname;
}

void record(size_t size_bytes) {
    void *frames[kFrames];
    const int depth = backtrace(frames, kFrames);
    const char *name = "unknown";
    for (int index = 0; index < depth; ++index)
        if (const char *file = file_of(frames[index]); !is_allocator(file)) {
            name = file;
            break;
        }
    for (Owner &owner : owners) {
        if (owner.count == 0)
            std::snprintf(owner.name, sizeof owner.name, "%s", name);
        else if (std::strncmp(owner.name, name, sizeof owner.name - 1) != 0)
            continue;
        ++owner.count;
        owner.bytes += static_cast<long>(size_bytes);
        owner.large += size_bytes >= kLarge;
        break;
    }
    if (size_bytes >= kLarge && kept_count < kKept) {
        std::memcpy(kept[kept_count], frames, sizeof frames);
        kept_depth[kept_count++] = depth;
    }
}

void *taken(void *block, size_t size_bytes) {
    if (block != nullptr && !inside) {
        live_bytes += static_cast<long>(malloc_usable_size(block));
        if (counting) {
            inside = true;
            record(size_bytes);
            inside = false;
        }
    }
    return block;
}

void given(void *block) {
    if (block != nullptr && !inside)
        live_bytes -= static_cast<long>(malloc_usable_size(block));
}

} // namespace

extern "C" {

void *malloc(size_t size) {
    return taken(__libc_malloc(size), size);
}

void *calloc(size_t count, size_t size) {
    return taken(__libc_calloc(count, size), count * size);
}

void *realloc(void *block, size_t size) {
    given(block);
    void *moved = __libc_realloc(block, size);
    return taken(moved, size);
}

void *memalign(size_t alignment, size_t size) {
    return taken(__libc_memalign(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = memalign(alignment, size);
    return *block == nullptr ? ENOMEM : 0;
}

void free(void *block) {
    given(block);
    __libc_free(block);
}

/// Returns the live bytes of the heap.
long heap_live_bytes() {
    return live_bytes;
}

void heap_count_begin() {
    inside = true;
    void *frames[1];
    backtrace(frames, 1); // loads the unwinder, which allocates
    std::memset(owners, 0, sizeof owners);
    kept_count = 0;
    inside = false;
    counting = true;
}

/// Writes a line for each owner (name, count, bytes, large), then the frames of large ones.
void heap_count_end(char *text, size_t room) {
    counting = false;
    inside = true;
    size_t used = 0;
    const auto add = [&](auto... arguments) {
        if (used < room)
            used += static_cast<size_t>(std::snprintf(text + used, room - used, arguments...));
    };
    text[0] = '\0';
    for (const Owner &owner : owners)
        if (owner.count != 0)
            add("%s %ld %ld %ld\n", owner.name, owner.count, owner.bytes, owner.large);
    for (int index = 0; index < kept_count; ++index) {
        char **names = backtrace_symbols(kept[index], kept_depth[index]);
        for (int frame = 0; frame < kept_depth[index]; ++frame)
            add("| %d %s\n", index, names[frame]);
        __libc_free(names);
    }
    inside = false;
}
}
