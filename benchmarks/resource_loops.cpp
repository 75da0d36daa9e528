/// Loops over memory resources and over other allocators, which alternate in one process.
///
///     resource_loops ROUNDS [NAME=LIBRARY | @NAME=TRACE]...
///         -> one JSON object a line: loop, contender, ns
///
/// A line of a trace is a slot and the bytes that come to it, or `~slot` and what goes from it.
///
/// Nanoseconds are processor time of the thread that works, per block.
#include "timed.hpp"

#include "tightship/resource/adaptor/counting.hpp"
#include "tightship/resource/adaptor/tracing.hpp"
#include "tightship/resource/composite.hpp"
#include "tightship/resource/host.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <random>
#include <thread>

namespace {

using namespace tightship::resource;

/// Allocator of another library: two of its functions.
struct Peer {
    void *(*allocate)(size_t);
    void (*release)(void *);

    void *get(size_t size_bytes) const { return allocate(size_bytes); }
    void put(void *pointer, size_t) const { release(pointer); }
};

/// Resource of ours, called by its own type.
template <typename Resource> struct Ours {
    Resource *resource;

    void *get(size_t size_bytes) const { return resource->allocate(size_bytes); }
    void put(void *pointer, size_t size_bytes) const { resource->deallocate(pointer, size_bytes); }
};

struct Loop {
    std::string name;
    std::string contender;
    std::function<double()> run;
    std::vector<double> ns = {};
};

void seen(void *pointer) {
    asm volatile("" : : "r"(pointer) : "memory");
}

template <typename Contender> double pairs(const Contender &who, size_t size_bytes) {
    return timed(200'000, [&](size_t) {
        void *pointer = who.get(size_bytes);
        seen(pointer);
        who.put(pointer, size_bytes);
    });
}

template <typename Contender>
double batches(const Contender &who, size_t size_bytes, size_t count) {
    std::vector<void *> blocks(count);
    return timed(100'000 / count,
                 [&](size_t) {
                     for (void *&block : blocks)
                         block = who.get(size_bytes);
                     for (void *block : blocks)
                         who.put(block, size_bytes);
                 }) /
           static_cast<double>(count);
}

double many(MemoryResource &resource, size_t size_bytes) {
    void *blocks[64];
    return timed(3000,
                 [&](size_t) {
                     if (resource.allocate_many(blocks, 64, size_bytes) != 64)
                         std::abort();
                     resource.deallocate_many(blocks, 64, size_bytes);
                 }) /
           64;
}

/// Replaces blocks of 16 to 1024 bytes, one after another, with 10,000 live at once.
template <typename Contender> double replacing(const Contender &who, unsigned seed) {
    struct Live {
        void *pointer;
        size_t size_bytes;
    };
    std::minstd_rand random(seed);
    std::vector<Live> live(10'000);
    for (Live &each : live) {
        each.size_bytes = 16 + random() % 1009;
        each.pointer = who.get(each.size_bytes);
    }
    const double ns = timed(100'000, [&](size_t) {
        const auto number = random();
        Live &each = live[number % live.size()];
        who.put(each.pointer, each.size_bytes);
        each.size_bytes = 16 + (number >> 7) % 1009;
        each.pointer = who.get(each.size_bytes);
    });
    for (const Live &each : live)
        who.put(each.pointer, each.size_bytes);
    return ns;
}

/// Recorded sequence of requests.
struct Trace {
    struct Event {
        int64_t slot;
        size_t size_bytes;
    };

    std::string name;
    std::vector<Event> events = {};
    size_t slot_count = 0;
};

std::vector<Trace> traces;

void read_trace(const std::string &name, const char *path) {
    std::FILE *file = std::fopen(path, "re");
    if (file == nullptr)
        std::abort();
    Trace &made = traces.emplace_back(Trace{name});
    for (Trace::Event event; std::fscanf(file, "%ld %zu", &event.slot, &event.size_bytes) == 2;) {
        made.events.push_back(event);
        made.slot_count = std::max(made.slot_count, static_cast<size_t>(std::abs(event.slot)) + 1);
    }
    std::fclose(file);
}

template <typename Contender> double played(const Contender &who, const Trace &trace) {
    struct Held {
        void *pointer;
        size_t size_bytes;
    };
    std::vector<Held> held(trace.slot_count);
    const double ns = timed(trace.events.size(), [&](size_t index) {
        const auto [slot, size_bytes] = trace.events[index];
        if (slot < 0) {
            Held &gone = held[static_cast<size_t>(~slot)];
            who.put(gone.pointer, gone.size_bytes);
            gone.pointer = nullptr;
        } else {
            held[static_cast<size_t>(slot)] = {who.get(size_bytes), size_bytes};
        }
    });
    for (const Held &each : held)
        if (each.pointer != nullptr)
            who.put(each.pointer, each.size_bytes);
    return ns;
}

/// Runs two threads at once; returns the mean cost of a block in each.
double both(const std::function<double(unsigned)> &work) {
    double ns[2] = {};
    std::atomic<int> ready{0};
    const auto run = [&](unsigned number) {
        ++ready;
        while (ready.load() < 2) {
        }
        ns[number] = work(number);
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    return (ns[0] + ns[1]) / 2;
}

/// Frees blocks in another thread than the one that requested them; returns the cost of both for
/// each block.
template <typename Contender> double handed_over(const Contender &who, size_t size_bytes) {
    constexpr size_t kCount = 4096, kTimes = 10;
    std::vector<void *> blocks(kCount);
    std::atomic<int> turn{0};
    double other_ns = 0, ns = 0;
    std::thread other([&] {
        for (size_t time = 0; time < kTimes; ++time) {
            while (turn.load() != 1)
                std::this_thread::yield();
            other_ns += timed(kCount, [&](size_t index) { who.put(blocks[index], size_bytes); });
            turn = 0;
        }
    });
    for (size_t time = 0; time < kTimes; ++time) {
        while (turn.load() != 0)
            std::this_thread::yield();
        ns += timed(kCount, [&](size_t index) { blocks[index] = who.get(size_bytes); });
        turn = 1;
    }
    other.join();
    return (ns + other_ns) / kTimes;
}

/// Slab of 64 MiB, a share of it in use, with holes at random.
struct FilledSlab {
    explicit FilledSlab(double share)
        : slab(std::make_shared<HostResource>(), size_t{64} << 20, 64), live(slab.block_count()) {
        if (slab.allocate_many(live.data(), live.size(), 64) != live.size())
            std::abort();
        std::shuffle(live.begin(), live.end(), std::minstd_rand(1));
        const auto kept = static_cast<size_t>(static_cast<double>(live.size()) * share);
        slab.deallocate_many(live.data() + kept, live.size() - kept, 64);
        live.resize(kept);
    }
    /// Replaces live blocks at random by new ones.
    double churn() {
        return timed(100'000, [&](size_t) {
            void *&each = live[random() % live.size()];
            slab.deallocate(each, 64);
            each = slab.allocate(64);
        });
    }

    SlabResource slab;
    std::vector<void *> live;
    std::minstd_rand random;
};

/// Free list with so many blocks that no two of them can join.
struct FilledList {
    FilledList(size_t count, Fit fit)
        : list(std::make_shared<BumpResource>(std::make_shared<HostResource>(),
                                              (count + 1000) * 2 * 2200, 1),
               FreeListResource::Settings{.fit = fit}) {
        std::minstd_rand random(2);
        std::vector<std::pair<void *, size_t>> blocks(2 * count);
        for (auto &[pointer, size_bytes] : blocks) {
            size_bytes = 64 + random() % 4033;
            pointer = list.allocate(size_bytes);
        }
        for (size_t index = 0; index < blocks.size(); index += 2)
            list.deallocate(blocks[index].first, blocks[index].second);
        for (size_t &size : sizes)
            size = 64 + random() % 4033;
    }
    double pairs() {
        return timed(20'000, [&](size_t index) {
            const size_t size_bytes = sizes[index % 4096];
            void *pointer = list.allocate(size_bytes);
            seen(pointer);
            list.deallocate(pointer, size_bytes);
        });
    }

    FreeListResource list;
    size_t sizes[4096];
};

template <typename Contender>
void add_allocator(std::vector<Loop> &loops, const std::string &name, Contender who) {
    constexpr bool is_slab = std::is_same_v<Contender, Ours<SlabResource>>;
    for (const size_t size : {size_t{16}, size_t{64}, size_t{1024}})
        if (!is_slab || size == 64)
            loops.push_back(
                {"pair " + std::to_string(size), name, [who, size] { return pairs(who, size); }});
    loops.push_back({"batch 64", name, [who] { return batches(who, 64, 1000); }});
    loops.push_back({"pair 64, 2 threads", name,
                     [who] { return both([who](unsigned) { return pairs(who, 64); }); }});
    loops.push_back({"hand-over 64", name, [who] { return handed_over(who, 64); }});
    if (is_slab)
        return;
    loops.push_back({"replace 16-1024", name, [who] { return replacing(who, 1); }});
    for (const Trace &trace : traces)
        loops.push_back(
            {"replay " + trace.name, name, [who, &trace] { return played(who, trace); }});
    loops.push_back({"replace 16-1024, 2 threads", name, [who] {
                         return both([who](unsigned seed) { return replacing(who, seed + 1); });
                     }});
}

void add_peers(std::vector<Loop> &loops, int count, char **arguments) {
    add_allocator(loops, "glibc", Peer{std::malloc, std::free});
    for (int index = 0; index < count; ++index) {
        const std::string argument = arguments[index];
        const size_t equals = argument.find('=');
        if (argument.starts_with('@'))
            continue;
        void *library = dlopen(argument.c_str() + equals + 1, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            std::fprintf(stderr, "%s\n", dlerror());
            std::exit(1);
        }
        add_allocator(loops, argument.substr(0, equals),
                      Peer{reinterpret_cast<void *(*)(size_t)>(dlsym(library, "malloc")),
                           reinterpret_cast<void (*)(void *)>(dlsym(library, "free"))});
    }
}

} // namespace

int main(int count, char **arguments) {
    const int rounds = std::atoi(arguments[1]);
    const auto host = std::make_shared<HostResource>();
    SlabResource slab(host, size_t{64} << 20, 64), fresh(host, size_t{64} << 20, 64);
    CompositeResource composite(host, size_t{2048} << 20);
    for (int index = 2; index < count; ++index)
        if (const std::string argument = arguments[index]; argument.starts_with('@'))
            read_trace(argument.substr(1, argument.find('=') - 1),
                       arguments[index] + argument.find('=') + 1);
    std::vector<Loop> loops;
    add_peers(loops, count - 2, arguments + 2);
    add_allocator(loops, "slab", Ours<SlabResource>{&slab});
    add_allocator(loops, "composite", Ours<CompositeResource>{&composite});
    loops.push_back(
        {"pair 64", "slab, virtual calls", [&] { return pairs(Ours<MemoryResource>{&slab}, 64); }});
    const std::shared_ptr<MemoryResource> inner = std::make_shared<SlabResource>(host, 1 << 20, 64);
    StatisticsResource counted(inner);
    TracingResource logged(inner, "/dev/null");
    loops.push_back({"pair 64", "statistics of a slab",
                     [&] { return pairs(Ours<StatisticsResource>{&counted}, 64); }});
    loops.push_back(
        {"pair 64", "log of a slab", [&] { return pairs(Ours<TracingResource>{&logged}, 64); }});
    loops.push_back({"many 64", "slab", [&] { return many(fresh, 64); }});
    loops.push_back(
        {"batch 64 of 64", "slab", [&] { return batches(Ours<SlabResource>{&fresh}, 64, 64); }});
    std::vector<std::unique_ptr<FilledSlab>> slabs;
    for (const int percent : {0, 50, 90, 99}) {
        auto &filled = *slabs.emplace_back(std::make_unique<FilledSlab>(percent / 100.0));
        const std::string full = "slab " + std::to_string(percent) + " % full";
        loops.push_back(
            {"pair", full, [&] { return pairs(Ours<SlabResource>{&filled.slab}, 64); }});
        if (percent > 0)
            loops.push_back({"churn", full, [&] { return filled.churn(); }});
    }
    std::vector<std::unique_ptr<FilledList>> lists;
    for (const auto &[blocks, fit] : {std::pair{size_t{1000}, Fit::best},
                                      {size_t{1'000'000}, Fit::best},
                                      {size_t{1000}, Fit::first},
                                      {size_t{10'000}, Fit::first}}) {
        auto &filled = *lists.emplace_back(std::make_unique<FilledList>(blocks, fit));
        loops.push_back({fit == Fit::best ? "best fit" : "first fit",
                         std::to_string(blocks) + " free blocks", [&] { return filled.pairs(); }});
    }
    for (int round = -1; round < rounds; ++round)
        for (size_t turn = 0; turn < loops.size(); ++turn) {
            Loop &loop = loops[round % 2 == 0 ? turn : loops.size() - 1 - turn];
            const double ns = loop.run();
            if (round >= 0)
                loop.ns.push_back(ns);
        }
    for (const Loop &loop : loops) {
        std::printf("{\"loop\": \"%s\", \"contender\": \"%s\", \"ns\": [", loop.name.c_str(),
                    loop.contender.c_str());
        for (size_t round = 0; round < loop.ns.size(); ++round)
            std::printf("%s%.3f", round == 0 ? "" : ", ", loop.ns[round]);
        std::printf("]}\n");
    }
}
