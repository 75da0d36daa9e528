#include "tightship/resource/quarantine.hpp"

#include <algorithm>

namespace tightship::resource {

void Quarantine::add(LiveBlock block) {
    const std::lock_guard lock(mutex_);
    size_bytes_ += block.size_bytes;
    blocks_.push_back(std::move(block));
}

bool Quarantine::contains(const void *pointer) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::find(blocks_, reinterpret_cast<uintptr_t>(pointer), &LiveBlock::start) !=
           blocks_.end();
}

bool Quarantine::leaves(bool all, LiveBlock &block) {
    const std::lock_guard lock(mutex_);
    if (blocks_.empty() || !(all || size_bytes_ > limit_bytes_))
        return false;
    size_bytes_ -= blocks_.front().size_bytes;
    block = std::move(blocks_.front());
    blocks_.pop_front();
    return true;
}

size_t Quarantine::size_bytes() const {
    const std::lock_guard lock(mutex_);
    return size_bytes_;
}

} // namespace tightship::resource
