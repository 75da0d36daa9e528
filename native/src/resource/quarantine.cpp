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

std::vector<LiveBlock> Quarantine::leaving(bool all) {
    std::vector<LiveBlock> taken;
    const std::lock_guard lock(mutex_);
    while (!blocks_.empty() && (all || size_bytes_ > limit_bytes_)) {
        size_bytes_ -= blocks_.front().size_bytes;
        taken.push_back(std::move(blocks_.front()));
        blocks_.pop_front();
    }
    return taken;
}

size_t Quarantine::size_bytes() const {
    const std::lock_guard lock(mutex_);
    return size_bytes_;
}

} // namespace tightship::resource
