/// Virtual caching allocator as published: caches of chunks and of mapped addresses.
#pragma once

#include "tightship/resource/fork_guard.hpp"
#include "tightship/resource/virtual/virtual_resource.hpp"

#include <deque>
#include <map>
#include <vector>

namespace tightship::resource {

/// Gives every block addresses of its own and whole chunks. Freed blocks stay mapped. A request
/// takes a free block of exactly its size (case 2), makes the largest smaller one longer (case 3),
/// takes the chunks of the smallest larger one (case 4), or creates all its chunks (case 1).
///
/// Addresses whose chunks were moved elsewhere are kept until the work that was given them is done.
/// Memory goes back to the device only when the device refuses a request.
class ChunkedVirtualResource final : public VirtualResource, private Forkable {
  public:
    static constexpr size_t kChunkBytes = size_t{20} << 20;

    /// Throws `Misuse` if the device does not support chunks of that size.
    ChunkedVirtualResource(std::shared_ptr<PagedDevice> device, size_t chunk_bytes = kChunkBytes);
    ~ChunkedVirtualResource() override;

    void *allocate_on(size_t size_bytes, size_t alignment, const StreamPointer &stream) override;
    Freed deallocate_on(void *pointer, size_t size_bytes, size_t alignment,
                        const StreamPointer &stream) override;
    Range range_of(const void *pointer) const override;
    size_t size_of(const void *pointer) const override;
    bool is_shared() const override { return device_->is_shared(); }
    Statistics statistics() const override;
    const std::shared_ptr<PagedDevice> &device() const override { return device_; }
    VirtualStatistics virtual_statistics() const override;
    std::vector<ListedBlock> blocks() const override;
    void record_events(size_t count) override;
    std::vector<Event> events() const override;
    size_t available_bytes() const override { return SIZE_MAX; }
    std::string refusal(size_t size_bytes, size_t alignment) const override;
    /// Gives back every chunk that is not in a live block or used by unfinished work.
    size_t trim() override;

    size_t chunk_bytes() const;
    /// Sets the size of chunks created from now on; cached chunks go back. Throws `Misuse` as the
    /// constructor.
    void set_chunk_bytes(size_t chunk_bytes);

  private:
    using Chunk = std::shared_ptr<PhysicalMemory>;
    /// Work that may still use memory: what the stream was given before the fence.
    struct Use {
        StreamPointer stream;
        std::shared_ptr<Fence> fence; // null if done

        bool is_done() const { return fence == nullptr || fence->is_signalled(); }
        bool allows(const StreamPointer &next) const { return next == stream || is_done(); }
    };
    struct FreeChunk {
        Chunk chunk;
        Use use;
    };
    /// Addresses, and the chunks mapped to them from the first byte on.
    struct Mapping {
        std::unique_ptr<VirtualMemory> addresses;
        std::vector<Chunk> chunks;
        size_t size_bytes = 0; // of the chunks
        size_t chunk_bytes = 0;
        size_t requested_bytes = 0; // while it is live
        Use use;
    };
    using Cache = std::multimap<size_t, Mapping>; // by size, the oldest first
    struct Request {
        size_t size_bytes; // whole chunks
        size_t alignment;
        const StreamPointer &stream;
    };
    /// Chunks collected for a request, with the work that may still use them.
    struct Haul {
        std::vector<FreeChunk> chunks;
        size_t size_bytes = 0;

        void add(FreeChunk chunk) {
            size_bytes += chunk.chunk->size_bytes();
            chunks.push_back(std::move(chunk));
        }
    };

    // The following functions require the lock. Those that return false put what they took into the
    // caches.
    bool obtain_or_retry(const Request &request, Mapping &mapping);
    bool obtain(const Request &request, Mapping &mapping);
    bool reuse(const Request &request, Mapping &mapping);
    bool lengthen(const Request &request, Mapping &mapping);
    bool make(const Request &request, Mapping &mapping);
    bool join(const Request &request, Haul &haul, Mapping &mapping);
    bool gather(size_t size_bytes, const StreamPointer &stream, Haul &haul);
    bool rob(Cache::iterator found, size_t size_bytes, Haul &haul);
    bool may_rob(const Mapping &mapping, const StreamPointer &stream) const;
    Cache::iterator find_to_rob(size_t size_bytes, const StreamPointer &stream);
    void keep(Haul &haul);
    bool separate(Mapping &mapping);
    void end(Mapping &mapping);
    void settle_waiting();
    size_t release_unused();
    void wait_for_all();
    Chunk create();

    void before_fork() override { mutex_.lock(); }
    void after_fork(bool is_child) override;

    std::shared_ptr<PagedDevice> device_;
    mutable std::mutex mutex_;
    size_t chunk_bytes_;
    bool is_abandoned_ = false; // in a child that would share every byte with its parent
    VirtualStatistics statistics_;
    EventRing events_;
    std::map<uintptr_t, Mapping> live_; // by address
    Cache cache_;
    std::deque<FreeChunk> free_chunks_;
    std::vector<Mapping> waiting_;
    ForkGuard guard_{*this};
};

} // namespace tightship::resource
