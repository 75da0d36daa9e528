#include "tightship/resource/adaptor/guard_page.hpp"

#include "tightship/os/limits.hpp"
#include "tightship/os/os.hpp"
#include "tightship/resource/pages.hpp"

#include <algorithm>
#include <cstring>

namespace tightship::resource {

namespace {

constexpr size_t kCanaryBytes = 32;
constexpr unsigned char kCanary = 0xC5;

/// Addresses and sizes of the parts of a block's memory.
struct Layout {
    Layout(size_t size_bytes, size_t alignment_of_block)
        : page(os::page_size()), alignment(std::max(page, alignment_of_block)),
          whole_bytes(2 * page + align_up(size_bytes + kCanaryBytes + alignment_of_block, page)),
          lead_bytes((whole_bytes - page - size_bytes) & ~(alignment_of_block - 1)) {}

    size_t page;
    size_t alignment;   // of the whole
    size_t whole_bytes; // pages without access included
    size_t lead_bytes;  // from its start to the block
};

struct Placed {
    Placed(const LiveBlock &block, const Layout &layout)
        : given(block.start - layout.lead_bytes), start(block.start),
          stop(block.start + block.size_bytes),
          open(((block.start - kCanaryBytes) & ~(layout.page - 1))),
          shut(align_up(block.start + block.size_bytes, layout.page)) {}

    bool protect(size_t page, bool is_open) const {
        return os::protect(reinterpret_cast<void *>(open - page), page, is_open) &&
               os::protect(reinterpret_cast<void *>(shut), page, is_open);
    }
    bool protect_between(bool is_open) const {
        return os::protect(reinterpret_cast<void *>(open), shut - open, is_open);
    }
    void plant() const {
        std::memset(reinterpret_cast<void *>(start - kCanaryBytes), kCanary, kCanaryBytes);
        std::memset(reinterpret_cast<void *>(stop), kCanary, shut - stop);
    }
    bool is_whole() const {
        const auto stands = [](uintptr_t from, uintptr_t to) {
            return std::all_of(reinterpret_cast<unsigned char *>(from),
                               reinterpret_cast<unsigned char *>(to),
                               [](unsigned char byte) { return byte == kCanary; });
        };
        return stands(start - kCanaryBytes, start) && stands(stop, shut);
    }

    uintptr_t given;       // from the upstream
    uintptr_t start, stop; // of the block
    uintptr_t open, shut;  // accessible pages; one without access lies on either side
};

} // namespace

GuardPageResource::GuardPageResource(std::shared_ptr<MemoryResource> upstream,
                                     size_t quarantine_bytes)
    : QuarantiningAdaptor(std::move(upstream), quarantine_bytes) {
    const Reach reach = this->upstream()->reach();
    const size_t page = os::page_size();
    if (reach.size_bytes < 3 * page || reach.alignment < page)
        throw Misuse("`upstream` never gives more than " + std::to_string(reach.size_bytes) +
                     " bytes at multiples of " + std::to_string(reach.alignment) +
                     ": a block between guard pages takes three pages of " + std::to_string(page) +
                     ".");
}

GuardPageResource::~GuardPageResource() {
    try {
        release_blocks(true);
    } catch (const std::bad_alloc &) { // of the upstream
    }
    live_.each([](const LiveBlock &block) {
        const Layout layout(block.size_bytes, block.alignment);
        Placed(block, layout).protect(layout.page, true);
    });
}

void *GuardPageResource::allocate(size_t size_bytes, size_t alignment) {
    const size_t asked = std::max<size_t>(size_bytes, 1);
    if (asked > SIZE_MAX / 4 || alignment > SIZE_MAX / 4)
        return nullptr;
    const Layout layout(asked, alignment);
    void *given = take(layout.whole_bytes, layout.alignment);
    if (given == nullptr)
        return nullptr;
    char *start = static_cast<char *>(given) + layout.lead_bytes;
    const LiveBlock block{reinterpret_cast<uintptr_t>(start), asked, alignment, 0, {}};
    const Placed placed(block, layout);
    placed.plant();
    if (os::may_map(4) && placed.protect(layout.page, false) && live_.add(start, asked, alignment))
        return start;
    give_back(block);
    return nullptr;
}

bool GuardPageResource::shut(const LiveBlock &block) {
    const Placed placed(block, Layout(block.size_bytes, block.alignment));
    if (!placed.is_whole())
        return false;
    placed.protect_between(false);
    return true;
}

void GuardPageResource::give_back(const LiveBlock &block) {
    const Layout layout(block.size_bytes, block.alignment);
    const Placed placed(block, layout);
    if (placed.protect(layout.page, true) && placed.protect_between(true))
        upstream()->deallocate(reinterpret_cast<void *>(placed.given), layout.whole_bytes,
                               layout.alignment);
}

Reach GuardPageResource::reach() const {
    const Reach whole = upstream()->reach();
    if (whole.size_bytes == SIZE_MAX)
        return whole;
    return {whole.size_bytes - 2 * os::page_size() - kCanaryBytes, whole.alignment};
}

std::string GuardPageResource::refusal(size_t size_bytes, size_t alignment) const {
    const std::string shortage = mapping_shortage();
    return shortage.empty() ? upstream()->refusal(size_bytes, alignment) : shortage;
}
} // namespace tightship::resource
