#include "tightship/resource/virtual/host_stream.hpp"

namespace tightship::resource {

class HostStream::Point final : public Fence {
  public:
    Point(std::shared_ptr<Progress> progress, uint64_t count)
        : progress_(std::move(progress)), count_(count) {}

    bool is_signalled() override {
        const std::lock_guard lock(progress_->mutex);
        return progress_->done >= count_;
    }
    bool wait_for(std::chrono::nanoseconds limit) override {
        std::unique_lock lock(progress_->mutex);
        return progress_->changed.wait_for(lock, limit, [&] { return progress_->done >= count_; });
    }

  private:
    std::shared_ptr<Progress> progress_;
    uint64_t count_; // functions that come before it
};

HostStream::HostStream() : worker_([progress = progress_] { work(*progress); }) {}

HostStream::~HostStream() {
    if (!worker_.joinable())
        return;
    {
        const std::lock_guard lock(progress_->mutex);
        progress_->is_ending = true;
    }
    progress_->changed.notify_all();
    worker_.join();
}

void HostStream::abandon() {
    std::deque<std::function<void()>> dropped;
    {
        const std::lock_guard lock(progress_->mutex);
        progress_->is_ending = true;
        dropped.swap(progress_->queue);
    }
    progress_->changed.notify_all();
    worker_.detach();
}

void HostStream::submit(std::function<void()> work) {
    {
        const std::lock_guard lock(progress_->mutex);
        progress_->queue.push_back(std::move(work));
        ++progress_->submitted;
    }
    progress_->changed.notify_all();
}

std::shared_ptr<Fence> HostStream::record() {
    const std::lock_guard lock(progress_->mutex);
    if (progress_->done == progress_->submitted)
        return nullptr;
    return std::make_shared<Point>(progress_, progress_->submitted);
}

bool HostStream::ends_at_once() const {
    const std::lock_guard lock(progress_->mutex);
    return progress_->done == progress_->submitted;
}

void HostStream::synchronize() {
    std::unique_lock lock(progress_->mutex);
    const uint64_t count = progress_->submitted;
    progress_->changed.wait(lock, [&] { return progress_->done >= count; });
}

void HostStream::work(Progress &progress) {
    std::unique_lock lock(progress.mutex);
    for (;;) {
        progress.changed.wait(lock, [&] { return progress.is_ending || !progress.queue.empty(); });
        if (progress.queue.empty())
            return;
        {
            const std::function<void()> next = std::move(progress.queue.front());
            progress.queue.pop_front();
            lock.unlock();
            next();
        }
        lock.lock();
        ++progress.done;
        progress.changed.notify_all();
    }
}

} // namespace tightship::resource
