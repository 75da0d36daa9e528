#include "tightship/resource/virtual/use.hpp"

#include <algorithm>

namespace tightship::resource {

void StreamUse::seal() {
    auto fence = stream_->record();
    if (fence == nullptr && fences_.empty())
        done_ = epoch_;
    else if (fence == nullptr) // all of it is done, earlier work included
        fences_.clear(), done_ = epoch_;
    else
        fences_.emplace_back(epoch_, std::move(fence));
    ++epoch_;
}

void StreamUse::look() {
    while (!fences_.empty() && fences_.front().second->is_signalled()) {
        done_ = fences_.front().first;
        fences_.pop_front();
    }
}

void StreamUse::poll() {
    look();
    seal();
    look();
}

void StreamUse::wait_until(std::chrono::steady_clock::time_point deadline) {
    poll();
    if (fences_.empty())
        return;
    const auto left = deadline - std::chrono::steady_clock::now();
    fences_.back().second->wait_for(std::max(left, std::chrono::steady_clock::duration::zero()));
    look();
}

} // namespace tightship::resource
