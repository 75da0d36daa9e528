/// Pages of files: memory that other processes can map, or that a disk backs.
#pragma once

#include "tightship/resource/pages.hpp"

#include <atomic>
#include <string>

namespace tightship::resource {

/// Backs each block with a file, mapped shared. A child of a fork sees the parent's writes; the
/// block then belongs to both processes, and each unmaps its own mapping.
class SharedResource : public PageResource {
  public:
    bool is_shared() const final { return true; }
    std::string refusal(size_t size_bytes, size_t alignment) const final;
    /// Returns the open file of a block; -1 if `pointer` is not a block.
    int descriptor_of(const void *pointer) const;

  private:
    void *map(size_t size_bytes, size_t alignment) final;
    void unmap(void *pointer, size_t size_bytes) final;
    /// Creates a file of `size_bytes` zeros, without a name; -1 if refused.
    virtual int open_file(size_t size_bytes) = 0;

    /// Descriptors by address, and their lock, which is held during a fork.
    struct Files final : resource::Forkable {
        void before_fork() override { mutex.lock(); }
        void after_fork(bool) override { mutex.unlock(); }

        std::mutex mutex;
        std::map<uintptr_t, int> descriptors;
        ForkGuard guard{*this};
    };
    mutable Files files_;
    std::atomic<bool> has_files_{true}; // at the time of the last request
};

/// Files in memory, which the system may swap but does not write to a disk.
class SegmentResource final : public SharedResource {
    int open_file(size_t size_bytes) override;
};

/// Files in a folder, with disk space allocated in advance, so that unused pages can leave memory.
class FileResource final : public SharedResource {
  public:
    explicit FileResource(std::string folder) : folder_(std::move(folder)) {}

  private:
    int open_file(size_t size_bytes) override;
    std::string folder_;
};

} // namespace tightship::resource
