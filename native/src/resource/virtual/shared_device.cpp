#include "tightship/resource/virtual/shared_device.hpp"

#include "tightship/os/limits.hpp"
#include "tightship/os/map.hpp"
#include "tightship/os/os.hpp"
#include "tightship/resource/memory_resource.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace tightship::resource {

/// File, and the parts of it that chunks have left; these have no memory.
class SharedDevice::File {
  public:
    File() : descriptor_(os::memory_file(0)) {
        if (descriptor_ < 0)
            throw Misuse("This system has no files in memory: use `HostDevice`.");
    }
    ~File() { os::close_file(descriptor_); }
    File(const File &) = delete;
    File &operator=(const File &) = delete;

    int descriptor() const { return descriptor_; }

    /// Takes part of the file; false if the file cannot be longer.
    bool take(size_t size_bytes, size_t &offset_bytes) {
        const std::lock_guard lock(mutex_);
        if (auto &left = left_[size_bytes]; !left.empty()) {
            offset_bytes = left.back();
            left.pop_back();
            return true;
        }
        if (!os::extend_file(descriptor_, size_bytes_ + size_bytes))
            return false;
        offset_bytes = size_bytes_;
        size_bytes_ += size_bytes;
        left_[size_bytes].reserve(size_bytes_ / size_bytes); // so that freeing never fails
        return true;
    }
    void leave(size_t size_bytes, size_t offset_bytes) {
        os::punch_hole(descriptor_, offset_bytes, size_bytes);
        const std::lock_guard lock(mutex_);
        left_[size_bytes].push_back(offset_bytes);
    }

  private:
    const int descriptor_;
    std::mutex mutex_;
    size_t size_bytes_ = 0;
    std::map<size_t, std::vector<size_t>> left_; // offsets by size
};

namespace {

struct SharedPhysical final : PhysicalMemory {
    SharedPhysical(std::shared_ptr<SharedDevice::File> file, size_t size_bytes, size_t offset_bytes)
        : PhysicalMemory(size_bytes), file(std::move(file)), offset_bytes(offset_bytes) {}
    ~SharedPhysical() override { file->leave(size_bytes(), offset_bytes); }

    std::shared_ptr<SharedDevice::File> file;
    size_t offset_bytes; // in the file
};

class SharedVirtual final : public VirtualMemory {
  public:
    using VirtualMemory::VirtualMemory;
    ~SharedVirtual() override { os::release(at(0), size_bytes()); }

    bool map(size_t offset_bytes, Chunks chunks) override {
        char *const first = at(offset_bytes);
        char *to = first;
        for (const PhysicalMemory *chunk : chunks) {
            const auto &shared = static_cast<const SharedPhysical &>(*chunk);
            if (!os::commit_file(to, shared.size_bytes(), shared.file->descriptor(),
                                 shared.offset_bytes)) {
                if (to > first)
                    os::decommit(first, static_cast<size_t>(to - first));
                return false;
            }
            to += shared.size_bytes();
        }
        return true;
    }
    size_t unmap(size_t offset_bytes, Chunks chunks) override {
        size_t size_bytes = 0;
        for (const PhysicalMemory *chunk : chunks)
            size_bytes += chunk->size_bytes();
        // If that would cut up too many mappings, the file's bytes stay visible here until
        // something else is mapped over them; the chunk's destructor frees them.
        if (os::may_split(2))
            os::decommit(at(offset_bytes), size_bytes);
        return chunks.size();
    }

  private:
    char *at(size_t offset_bytes) const { return reinterpret_cast<char *>(start() + offset_bytes); }
    bool extend(size_t more_bytes) override { return os::reserve_at(at(size_bytes()), more_bytes); }
};

} // namespace

SharedDevice::SharedDevice() : file_(std::make_shared<File>()) {}

size_t SharedDevice::granularity_bytes() const {
    return os::page_size();
}

bool SharedDevice::can_back(size_t block_bytes) const {
    return block_bytes <= os::memory_bytes();
}

int SharedDevice::descriptor() const {
    return file_->descriptor();
}

size_t SharedDevice::offset_of(const PhysicalMemory &chunk) {
    return static_cast<const SharedPhysical &>(chunk).offset_bytes;
}

std::unique_ptr<PhysicalMemory> SharedDevice::create_physical_memory(size_t size_bytes) {
    size_t offset_bytes = 0;
    if (!file_->take(size_bytes, offset_bytes))
        return nullptr;
    return std::make_unique<SharedPhysical>(file_, size_bytes, offset_bytes);
}

std::unique_ptr<VirtualMemory> SharedDevice::create_virtual_memory(size_t size_bytes,
                                                                   size_t alignment) {
    void *start = os::reserve(size_bytes, std::max(alignment, os::page_size()));
    if (start == nullptr)
        return nullptr;
    return std::make_unique<SharedVirtual>(reinterpret_cast<uintptr_t>(start), size_bytes);
}

} // namespace tightship::resource
