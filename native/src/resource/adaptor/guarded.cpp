#include "tightship/resource/adaptor/guarded.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tightship::resource {

namespace {

constexpr size_t kCanaryBytes = 32;
constexpr unsigned char kFilling = 0xDD;
constexpr size_t kFaultsMax = 100;

using Canary = std::array<uint64_t, kCanaryBytes / sizeof(uint64_t)>;

/// Returns the canary of an address; each address has another, so that copied bytes never match.
Canary canary_at(const char *pointer) {
    Canary canary;
    canary.fill(reinterpret_cast<uintptr_t>(pointer) * 0x9E3779B97F4A7C15 ^ 0xC0DEDBADC0DEDBAD);
    return canary;
}

void plant(char *pointer) {
    const Canary canary = canary_at(pointer);
    std::memcpy(pointer, canary.data(), kCanaryBytes);
}

bool stands(const char *pointer) {
    const Canary canary = canary_at(pointer);
    return std::memcmp(pointer, canary.data(), kCanaryBytes) == 0;
}

/// Returns the bytes before a block: the canary, and padding that keeps the block aligned.
size_t lead_bytes(size_t alignment) {
    return std::max(alignment, kCanaryBytes);
}

size_t whole_bytes(const LiveBlock &block) {
    return lead_bytes(block.alignment) + block.size_bytes + kCanaryBytes;
}

char *start_of(const LiveBlock &block) {
    return reinterpret_cast<char *>(block.start);
}

bool is_whole(const LiveBlock &block) {
    return stands(start_of(block) - kCanaryBytes) && stands(start_of(block) + block.size_bytes);
}

bool is_untouched(const LiveBlock &block) {
    const auto *bytes = reinterpret_cast<const unsigned char *>(block.start);
    return std::all_of(bytes, bytes + block.size_bytes,
                       [](unsigned char byte) { return byte == kFilling; });
}

std::string told(const LiveBlock &block, const char *what) {
    char text[32];
    std::snprintf(text, sizeof text, "%#zx", static_cast<size_t>(block.start));
    return "Block " + std::to_string(block.number) + " of " + std::to_string(block.size_bytes) +
           " bytes at " + text + " " + what;
}

constexpr const char *kBeside = "was written to beside its bytes.";
constexpr const char *kAfter = "was written to after it was given back.";

} // namespace

GuardedResource::GuardedResource(std::shared_ptr<MemoryResource> upstream, size_t quarantine_bytes)
    : QuarantiningAdaptor(std::move(upstream), quarantine_bytes) {
    const size_t largest_bytes = this->upstream()->reach().size_bytes;
    if (largest_bytes <= 2 * kCanaryBytes)
        throw Misuse("`upstream` never gives more than " + std::to_string(largest_bytes) +
                     " bytes: the canaries of a block take " + std::to_string(2 * kCanaryBytes) +
                     ".");
}

GuardedResource::~GuardedResource() {
    try {
        release_blocks(true);
    } catch (const std::bad_alloc &) { // no memory to record a fault
    }
}

void *GuardedResource::allocate(size_t size_bytes, size_t alignment) {
    const size_t asked = std::max<size_t>(size_bytes, 1);
    const size_t lead = lead_bytes(alignment);
    if (asked > SIZE_MAX - lead - kCanaryBytes)
        return nullptr;
    const size_t whole = lead + asked + kCanaryBytes;
    void *given = take(whole, alignment);
    if (given == nullptr)
        return nullptr;
    char *start = static_cast<char *>(given) + lead;
    plant(start - kCanaryBytes);
    plant(start + asked);
    if (live_.add(start, asked, alignment))
        return start;
    upstream()->deallocate(given, whole, alignment);
    return nullptr;
}

bool GuardedResource::shut(const LiveBlock &block) {
    if (!is_whole(block))
        return false;
    std::memset(start_of(block), kFilling, block.size_bytes);
    return true;
}

void GuardedResource::give_back(const LiveBlock &block) {
    const bool is_untouched_whole = is_untouched(block) && is_whole(block);
    const Freed freed = upstream()->deallocate(start_of(block) - lead_bytes(block.alignment),
                                               whole_bytes(block), block.alignment);
    if (is_untouched_whole && freed == Freed::done)
        return;
    const std::lock_guard lock(mutex_);
    if (faults_.size() < kFaultsMax)
        faults_.push_back(told(block, is_untouched_whole ? "was refused by `upstream`." : kAfter));
}

Reach GuardedResource::reach() const {
    const Reach whole = upstream()->reach();
    if (whole.size_bytes == SIZE_MAX)
        return whole;
    return {whole.size_bytes - 2 * kCanaryBytes, whole.alignment};
}

std::vector<std::string> GuardedResource::faults() const {
    std::vector<std::string> found;
    for (const LiveBlock &block : live_.all())
        if (!is_whole(block))
            found.push_back(told(block, kBeside));
    waiting_.each([&found](const LiveBlock &block) {
        if (!is_untouched(block) || !is_whole(block))
            found.push_back(told(block, kAfter));
    });
    const std::lock_guard lock(mutex_);
    found.insert(found.begin(), faults_.begin(), faults_.end());
    return found;
}

} // namespace tightship::resource
