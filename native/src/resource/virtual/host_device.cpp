#include "tightship/resource/virtual/host_device.hpp"

#include "tightship/os/limits.hpp"
#include "tightship/os/map.hpp"
#include "tightship/os/os.hpp"

#include <algorithm>
#include <new>
#include <numeric>
#include <vector>

namespace tightship::resource {

namespace {

/// Size below which blocks are left to the system's own check when mapped: it sees all of one.
constexpr size_t kCheckedBytes = size_t{256} << 20;

class HostVirtual;

/// Chunk that records where its pages are: mapped, left behind by `unmap`, parked, or not there
/// yet.
struct HostPhysical final : PhysicalMemory {
    using PhysicalMemory::PhysicalMemory;
    ~HostPhysical() override { drop(); }
    /// Gives its pages back, wherever they are.
    void drop();

    char *pages = nullptr; // null: none yet
    HostVirtual *home =
        nullptr; // owner of the addresses they are at; null: parked at addresses of its own
};

/// Chunks by the addresses that their pages lie at: one entry for each `unit` of a range, which
/// divides the sizes and offsets of all that were ever there. A search tree of as many small pages
/// took longer than the calls that move them.
class Tenants {
  public:
    /// Makes room for a chunk of that size there; throws `std::bad_alloc`.
    void admit(size_t offset_bytes, size_t size_bytes) {
        const size_t unit = std::gcd(std::gcd(unit_, size_bytes), offset_bytes);
        if (unit != unit_)
            refine(unit);
        if (const size_t count = (offset_bytes + size_bytes) / unit_; count > entries_.size())
            entries_.resize(count);
    }
    /// Records what lies in `[offset_bytes, offset_bytes + size_bytes)`, null for nothing.
    /// REQUIRES: a chunk was admitted there.
    void set(size_t offset_bytes, size_t size_bytes, HostPhysical *chunk) {
        std::fill_n(entries_.begin() + static_cast<ptrdiff_t>(offset_bytes / unit_),
                    size_bytes / unit_, chunk);
    }
    /// Returns the first chunk of a part of the range; null if none lies there.
    HostPhysical *first(size_t offset_bytes, size_t size_bytes) const {
        if (unit_ == 0)
            return nullptr;
        const size_t stop = (offset_bytes + size_bytes + unit_ - 1) / unit_;
        for (size_t at = offset_bytes / unit_; at < std::min(stop, entries_.size()); ++at)
            if (entries_[at] != nullptr)
                return entries_[at];
        return nullptr;
    }

  private:
    void refine(size_t unit) {
        std::vector<HostPhysical *> finer(entries_.size() * (unit_ / unit));
        for (size_t at = 0; at < finer.size(); ++at)
            finer[at] = entries_[at * unit / unit_];
        entries_ = std::move(finer);
        unit_ = unit;
    }

    size_t unit_ = 0; // bytes; 0: there was none yet
    std::vector<HostPhysical *> entries_;
};

/// Addresses, never released even for a moment, because another thread could map something there.
class HostVirtual final : public VirtualMemory {
  public:
    using VirtualMemory::VirtualMemory;
    ~HostVirtual() override {
        clear(at(0), size_bytes());
        os::release(at(0), size_bytes());
    }

    bool map(size_t offset_bytes, Chunks chunks) override;
    size_t unmap(size_t, Chunks chunks) override { return chunks.size(); }

    char *at(size_t offset_bytes) const { return reinterpret_cast<char *>(start() + offset_bytes); }
    void forget(const HostPhysical &chunk) {
        tenants_.set(offset(chunk.pages), chunk.size_bytes(), nullptr);
    }

  private:
    bool extend(size_t more_bytes) override { return os::reserve_at(at(size_bytes()), more_bytes); }
    size_t offset(const char *address) const {
        return reinterpret_cast<uintptr_t>(address) - start();
    }
    void clear(char *where, size_t size_bytes);
    void park(HostPhysical &chunk);
    bool may_move(char *to, Chunks chunks) const;
    bool lies(const HostPhysical &chunk, const char *where) const {
        return chunk.home == this && chunk.pages == where;
    }
    bool settle(char *to, Chunks run, size_t run_bytes);
    bool lodge(char *to, Chunks run);

    Tenants tenants_; // chunks whose pages lie here
};

HostPhysical &host(PhysicalMemory *chunk) {
    return static_cast<HostPhysical &>(*chunk);
}

/// Returns whether the pages of two chunks that follow each other in a request can move at once.
bool follow(const HostPhysical &first, const HostPhysical &second) {
    if (first.home != second.home || (first.pages == nullptr) != (second.pages == nullptr))
        return false;
    return first.pages == nullptr ||
           (first.home != nullptr && second.pages == first.pages + first.size_bytes());
}

/// Gives back pages that lie among others. If that would cut up too many mappings they stay open,
/// without memory, and the next chunk mapped there finds them so.
void empty(char *pages, size_t size_bytes) {
    if (!os::may_split(2) || !os::decommit(pages, size_bytes))
        os::discard(pages, size_bytes);
}

void HostPhysical::drop() {
    if (home != nullptr) {
        home->forget(*this);
        empty(pages, size_bytes());
    } else if (pages != nullptr) {
        os::release(pages, size_bytes());
    }
    pages = nullptr;
    home = nullptr;
}

/// Gives back the pages of chunks that `follow` each other in a range.
void drop_run(std::span<const std::unique_ptr<PhysicalMemory>> run) {
    char *const pages = host(run.front().get()).pages;
    size_t run_bytes = 0;
    for (const auto &each : run) {
        HostPhysical &chunk = host(each.get());
        run_bytes += chunk.size_bytes();
        chunk.home->forget(chunk);
        chunk.home = nullptr;
        chunk.pages = nullptr;
    }
    empty(pages, run_bytes);
}

/// Moves a chunk's pages from here to addresses of their own; if the system has none, or enough
/// mappings are cut up, the chunk loses its pages.
void HostVirtual::park(HostPhysical &chunk) {
    const size_t size_bytes = chunk.size_bytes();
    void *parking = os::may_split(4) ? os::reserve(size_bytes, os::kHugePage) : nullptr;
    if (parking != nullptr && !os::move_pages(chunk.pages, size_bytes, parking)) {
        os::release(parking, size_bytes);
        parking = nullptr;
    }
    if (parking == nullptr)
        empty(chunk.pages, size_bytes);
    chunk.pages = static_cast<char *>(parking);
    chunk.home = nullptr;
}

/// Parks pages that were left here.
void HostVirtual::clear(char *where, size_t size_bytes) {
    while (HostPhysical *const chunk = tenants_.first(offset(where), size_bytes)) {
        forget(*chunk);
        park(*chunk);
    }
}

/// Moves in the pages of chunks that `follow` each other.
bool HostVirtual::settle(char *to, Chunks run, size_t run_bytes) {
    char *const from = host(run.front()).pages;
    HostVirtual *const home = host(run.front()).home;
    if (!lodge(to, run))
        return false;
    if (from == nullptr ? !os::commit(to, run_bytes) : !os::move_pages(from, run_bytes, to)) {
        tenants_.set(offset(to), run_bytes, nullptr);
        return false;
    }
    if (from != nullptr && home == nullptr)
        os::release(from, run_bytes);
    for (PhysicalMemory *chunk : run) {
        if (home != nullptr)
            home->forget(host(chunk));
        host(chunk).pages = to;
        host(chunk).home = this;
        to += chunk->size_bytes();
    }
    return true;
}

/// Records chunks before their pages move in; false if memory for the record is refused.
bool HostVirtual::lodge(char *to, Chunks run) {
    try {
        size_t next = offset(to);
        for (const PhysicalMemory *chunk : run) {
            tenants_.admit(next, chunk->size_bytes());
            next += chunk->size_bytes();
        }
    } catch (const std::bad_alloc &) {
        return false;
    }
    for (PhysicalMemory *chunk : run) {
        tenants_.set(offset(to), chunk->size_bytes(), &host(chunk));
        to += chunk->size_bytes();
    }
    return true;
}

/// Returns whether chunks may move in the pages they have: a run of them cuts up two mappings.
bool HostVirtual::may_move(char *to, Chunks chunks) const {
    size_t run_count = 0;
    const HostPhysical *before = nullptr;
    for (PhysicalMemory *chunk : chunks) {
        const HostPhysical &next = host(chunk);
        if (next.pages != nullptr && !lies(next, to))
            run_count += before == nullptr || !follow(*before, next);
        before = &next;
        to += chunk->size_bytes();
    }
    return run_count == 0 || os::may_split(4 * run_count);
}

bool HostVirtual::map(size_t offset_bytes, Chunks chunks) {
    char *to = at(offset_bytes);
    const bool moves = may_move(to, chunks);
    for (PhysicalMemory *chunk : chunks) {
        HostPhysical &each = host(chunk);
        if (!lies(each, to)) {
            clear(to, chunk->size_bytes());
            if (!moves)
                each.drop();
        }
        to += chunk->size_bytes();
    }
    to = at(offset_bytes);
    while (!chunks.empty()) {
        size_t count = 1, run_bytes = chunks.front()->size_bytes();
        if (!lies(host(chunks.front()), to)) {
            for (; count < chunks.size() && follow(host(chunks[count - 1]), host(chunks[count]));
                 ++count)
                run_bytes += chunks[count]->size_bytes();
            if (!settle(to, chunks.first(count), run_bytes)) {
                // Pages that the system keeps apart move one by one. New ones must not, because the
                // system checks the size of each request.
                if (count == 1 || host(chunks.front()).pages == nullptr)
                    return false;
                count = 1;
                run_bytes = chunks.front()->size_bytes();
                if (!settle(to, chunks.first(1), run_bytes))
                    return false; // those before lie there as if they had been unmapped
            }
        }
        to += run_bytes;
        chunks = chunks.subspan(count);
    }
    return true;
}

} // namespace

size_t HostDevice::granularity_bytes() const {
    return os::page_size();
}

bool HostDevice::can_back(size_t block_bytes) const {
    return block_bytes < kCheckedBytes || block_bytes <= os::largest_mapping();
}

std::unique_ptr<PhysicalMemory> HostDevice::create_physical_memory(size_t size_bytes) {
    return std::make_unique<HostPhysical>(size_bytes);
}

void HostDevice::destroy(std::span<std::unique_ptr<PhysicalMemory>> chunks) {
    for (size_t first = 0, next; first < chunks.size(); first = next) {
        const HostPhysical &leader = host(chunks[first].get());
        for (next = first + 1; next < chunks.size() && leader.home != nullptr &&
                               follow(host(chunks[next - 1].get()), host(chunks[next].get()));
             ++next) {
        }
        if (leader.home != nullptr)
            drop_run(chunks.subspan(first, next - first));
        for (size_t each = first; each < next; ++each)
            chunks[each].reset();
    }
}

std::unique_ptr<VirtualMemory> HostDevice::create_virtual_memory(size_t size_bytes,
                                                                 size_t alignment) {
    void *start = os::reserve(size_bytes, std::max(alignment, os::kHugePage));
    if (start == nullptr)
        return nullptr;
    return std::make_unique<HostVirtual>(reinterpret_cast<uintptr_t>(start), size_bytes);
}

} // namespace tightship::resource
