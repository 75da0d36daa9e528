#include "tightship/resource/adaptor/combining.hpp"

#include "tightship/resource/thread_slot.hpp"

namespace tightship::resource {

namespace {

constexpr int kLooks = 200; // polls of a request before it is withdrawn

constexpr uintptr_t kIsNumber = uintptr_t{1} << 63; // no block has such an address

} // namespace

uintptr_t CombiningResource::Wish::number_of(size_t size, size_t boundary) const {
    const uintptr_t number = state.load(std::memory_order_acquire);
    const bool is_same = size_bytes.load(std::memory_order_relaxed) == size &&
                         alignment.load(std::memory_order_relaxed) == boundary;
    return (number & kIsNumber) != 0 && is_same ? number : 0;
}

void *CombiningResource::allocate(size_t size_bytes, size_t alignment) {
    const uint32_t slot = thread_slot();
    if (slot >= kWishes)
        return upstream()->allocate(size_bytes, alignment);
    if (!is_serving_.exchange(true, std::memory_order_acquire)) {
        void *block = serve(size_bytes, alignment);
        is_serving_.store(false, std::memory_order_release);
        return block;
    }
    Wish &own = wishes_[slot];
    own.size_bytes.store(size_bytes, std::memory_order_relaxed);
    own.alignment.store(alignment, std::memory_order_relaxed);
    uint32_t wishers = wisher_count_.load(std::memory_order_relaxed);
    while (wishers <= slot && !wisher_count_.compare_exchange_weak(wishers, slot + 1)) {
    }
    const uintptr_t number = kIsNumber | wish_count_.fetch_add(1, std::memory_order_relaxed);
    own.state.store(number, std::memory_order_release);
    for (int looks = 0; looks < kLooks && is_serving_.load(std::memory_order_relaxed); ++looks)
        if (own.state.load(std::memory_order_relaxed) != number)
            break;
    const uintptr_t handed = own.state.exchange(0, std::memory_order_acquire);
    return handed != number ? reinterpret_cast<void *>(handed)
                            : upstream()->allocate(size_bytes, alignment);
}

/// Obtains a block for the calling thread, and one for each equal request.
void *CombiningResource::serve(size_t size_bytes, size_t alignment) {
    struct Served {
        Wish *wish;
        uintptr_t number;
    };
    std::array<Served, kWishes> served;
    size_t wish_count = 0;
    for (uint32_t slot = 0; slot < wisher_count_.load(std::memory_order_relaxed); ++slot)
        if (const uintptr_t number = wishes_[slot].number_of(size_bytes, alignment); number != 0)
            served[wish_count++] = {&wishes_[slot], number};
    if (wish_count == 0)
        return upstream()->allocate(size_bytes, alignment);
    std::array<void *, kWishes + 1> blocks;
    size_t left = upstream()->allocate_many(blocks.data(), wish_count + 1, size_bytes, alignment);
    if (left == 0)
        return nullptr;
    void *const first = blocks[--left];
    for (size_t index = 0; index < wish_count && left > 0; ++index) {
        auto &[wish, number] = served[index];
        const auto block = reinterpret_cast<uintptr_t>(blocks[left - 1]);
        if (!wish->state.compare_exchange_strong(number, block, std::memory_order_release))
            continue;
        --left;
        handed_count_.fetch_add(1, std::memory_order_relaxed);
    }
    upstream()->deallocate_many(blocks.data(), left, size_bytes, alignment);
    return first;
}

/// Resets the state in a child, where no thread is serving.
void CombiningResource::after_fork(bool is_child) {
    if (!is_child)
        return;
    for (Wish &wish : wishes_)
        wish.state.store(0, std::memory_order_relaxed);
    is_serving_.store(false, std::memory_order_relaxed);
}

} // namespace tightship::resource
