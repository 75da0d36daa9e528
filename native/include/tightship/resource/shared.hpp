/// Pages of files: memory that other processes can map, or that a disk backs.
#pragma once

#include "tightship/resource/pages.hpp"

#include <atomic>
#include <string>

namespace tightship::resource {

/// A file for each block, mapped shared. A child of a fork sees the parent's writes; the block is
/// then of both, and each gives back its own mapping.
class SharedResource : public PageResource {
  public:
    bool is_shared() const final { return true; }
    std::string refusal(size_t size_bytes, size_t alignment) const final;
    /// The open file that a block is of; -1 where `pointer` is no block.
    int descriptor_of(const void *pointer) const;

  private:
    void *map(size_t size_bytes, size_t alignment) final;
    void unmap(void *pointer, size_t size_bytes) final;
    /// A new file of `size_bytes` zeros, without a name; -1 when refused.
    virtual int open_file(size_t size_bytes) = 0;

    /// Descriptors by address, and their lock; a fork waits for it.
    struct Files final : resource::Forkable {
        void before_fork() override { mutex.lock(); }
        void after_fork(bool) override { mutex.unlock(); }

        std::mutex mutex;
        std::map<uintptr_t, int> descriptors;
        ForkGuard guard{*this};
    };
    mutable Files files_;
    std::atomic<bool> has_files_{true}; // when the last block was asked for
};

/// Files in memory, that the system may swap but not write to a disk.
class SegmentResource final : public SharedResource {
    int open_file(size_t size_bytes) override;
};

/// Files in a folder, their room taken in advance: what is not in use can leave memory for it.
class FileResource final : public SharedResource {
  public:
    explicit FileResource(std::string folder) : folder_(std::move(folder)) {}

  private:
    int open_file(size_t size_bytes) override;
    std::string folder_;
};

} // namespace tightship::resource
