#include "tightship/resource/virtual/cuda_device.hpp"

#include "tightship/resource/virtual/cuda_stream.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tightship::resource {

namespace {

struct CudaPhysical final : PhysicalMemory {
    CudaPhysical(std::shared_ptr<const CudaContext> context, size_t size_bytes, cuda::Handle handle)
        : PhysicalMemory(size_bytes), context(std::move(context)), handle(handle) {}
    ~CudaPhysical() override { (void)context->driver().release(handle); }

    std::shared_ptr<const CudaContext> context;
    cuda::Handle handle;
};

class CudaVirtual final : public VirtualMemory {
  public:
    CudaVirtual(std::shared_ptr<const CudaContext> context, cuda::Pointer start, size_t size_bytes)
        : VirtualMemory(static_cast<uintptr_t>(start), size_bytes), context_(std::move(context)),
          parts_{size_bytes} {}
    ~CudaVirtual() override {
        if (!release_stuck())
            return; // the driver keeps whatever it refuses to release, addresses included
        cuda::Pointer part = start();
        for (const size_t part_bytes : parts_) {
            (void)context_->driver().address_free(part, part_bytes);
            part += part_bytes;
        }
    }

    bool map(size_t offset_bytes, Chunks chunks) override {
        const CudaContext::Current current(*context_);
        if (!current || !release_stuck())
            return false;
        const cuda::Pointer first = start() + offset_bytes;
        cuda::Pointer to = first;
        size_t count = 0;
        for (; count < chunks.size() && map_one(to, *chunks[count]); ++count)
            to += chunks[count]->size_bytes();
        if (count == chunks.size() && allow(first, to))
            return true;
        for (; count > 0; --count) {
            const size_t size_bytes = chunks[count - 1]->size_bytes();
            to -= size_bytes;
            if (context_->driver().unmap(to, size_bytes) != cuda::kSuccess)
                stuck_.emplace_back(to, size_bytes);
        }
        return false;
    }
    size_t unmap(size_t offset_bytes, Chunks chunks) override {
        const CudaContext::Current current(*context_);
        if (!current)
            return 0;
        cuda::Pointer at = start() + offset_bytes;
        for (const PhysicalMemory *chunk : chunks)
            at += chunk->size_bytes();
        size_t left = chunks.size();
        for (; left > 0; --left) {
            const size_t size_bytes = chunks[left - 1]->size_bytes();
            at -= size_bytes;
            if (context_->driver().unmap(at, size_bytes) != cuda::kSuccess)
                break;
        }
        return chunks.size() - left;
    }

  private:
    /// Returns the end of the reservation that an address lies in.
    cuda::Pointer part_stop(cuda::Pointer address) const {
        cuda::Pointer stop = start();
        for (const size_t part_bytes : parts_)
            if ((stop += part_bytes) > address)
                break;
        return stop;
    }
    /// Maps a chunk; returns false also if it would span two reservations.
    bool map_one(cuda::Pointer to, const PhysicalMemory &chunk) const {
        const size_t size_bytes = chunk.size_bytes();
        const cuda::Handle handle = static_cast<const CudaPhysical &>(chunk).handle;
        return to + size_bytes <= part_stop(to) &&
               context_->driver().map(to, size_bytes, 0, handle, 0) == cuda::kSuccess;
    }
    /// Lets the device read and write mapped memory, reservation by reservation.
    bool allow(cuda::Pointer start, cuda::Pointer stop) const {
        const cuda::AccessDescription access{context_->properties().location, cuda::kReadWrite};
        while (start < stop) {
            const cuda::Pointer part = std::min(stop, part_stop(start));
            if (context_->driver().set_access(start, part - start, &access, 1) != cuda::kSuccess)
                return false;
            start = part;
        }
        return true;
    }
    /// Unmaps chunks that a failed call of `map` could not unmap; false while the driver refuses.
    bool release_stuck() {
        if (stuck_.empty())
            return true;
        const CudaContext::Current current(*context_);
        std::erase_if(stuck_, [&](const auto &stuck) {
            return current && context_->driver().unmap(stuck.first, stuck.second) == cuda::kSuccess;
        });
        return stuck_.empty();
    }
    bool extend(size_t more_bytes) override {
        const CudaContext::Current current(*context_);
        if (!current)
            return false;
        const CudaDriver &driver = context_->driver();
        const cuda::Pointer wanted = start() + size_bytes();
        cuda::Pointer got = 0;
        parts_.reserve(parts_.size() + 1);
        if (driver.address_reserve(&got, more_bytes, 0, wanted, 0) != cuda::kSuccess)
            return false;
        if (got != wanted) {
            (void)driver.address_free(got, more_bytes);
            return false;
        }
        parts_.push_back(more_bytes);
        return true;
    }

    std::shared_ptr<const CudaContext> context_;
    std::vector<size_t> parts_;                           // in the order of reservation
    std::vector<std::pair<cuda::Pointer, size_t>> stuck_; // mapped by a failed call
};

} // namespace

CudaContext::CudaContext(std::shared_ptr<const CudaDriver> driver, int ordinal)
    : driver_(std::move(driver)) {
    int count = 0;
    driver_->check(driver_->device_get_count(&count), "count its devices");
    if (ordinal < 0 || ordinal >= count)
        throw Unavailable("Unknown CUDA device " + std::to_string(ordinal) + ": the driver has " +
                          std::to_string(count) +
                          ". Choose a smaller `ordinal`, or look at `CUDA_VISIBLE_DEVICES`.");
    driver_->check(driver_->device_get(&device_, ordinal), "open a device");
    int is_able = 0;
    driver_->check(driver_->device_get_attribute(&is_able, cuda::kHasVirtualMemory, device_),
                   "say what a device can");
    if (is_able == 0)
        throw Unavailable("CUDA device " + std::to_string(ordinal) +
                          " cannot map chunks of memory to addresses. Choose another device.");
    driver_->check(driver_->primary_retain(&context_, device_), "make a context");
}

CudaContext::~CudaContext() {
    (void)driver_->primary_release(device_);
}

cuda::AllocationProperties CudaContext::properties() const {
    cuda::AllocationProperties properties{};
    properties.type = cuda::kPinned;
    properties.location = {cuda::kDeviceLocation, device_};
    return properties;
}

CudaContext::Current::Current(const CudaContext &context)
    : driver_(context.driver()),
      is_current_(driver_.push_current(context.context_) == cuda::kSuccess) {}

CudaContext::Current::~Current() {
    cuda::Context popped = nullptr;
    if (is_current_)
        (void)driver_.pop_current(&popped);
}

CudaDevice::CudaDevice(int ordinal, const std::string &driver_path)
    : context_(std::make_shared<CudaContext>(CudaDriver::open(driver_path), ordinal)) {
    const CudaDriver &driver = context_->driver();
    const CudaContext::Current current(*context_);
    const cuda::AllocationProperties properties = context_->properties();
    driver.check(
        driver.get_granularity(&granularity_bytes_, &properties, cuda::kMinimumGranularity),
        "say how large chunks are");
    driver.check(driver.device_total_mem(&total_bytes_, context_->device()),
                 "say how much memory a device has");
}

bool CudaDevice::heeds(const Stream &stream) const {
    const auto *const own = dynamic_cast<const CudaStream *>(&stream);
    return own != nullptr && &own->context().driver() == &context_->driver() &&
           own->context().device() == context_->device();
}

std::unique_ptr<PhysicalMemory> CudaDevice::create_physical_memory(size_t size_bytes) {
    const CudaContext::Current current(*context_);
    const cuda::AllocationProperties properties = context_->properties();
    cuda::Handle handle = 0;
    if (!current ||
        context_->driver().create(&handle, size_bytes, &properties, 0) != cuda::kSuccess)
        return nullptr;
    return std::make_unique<CudaPhysical>(context_, size_bytes, handle);
}

std::unique_ptr<VirtualMemory> CudaDevice::create_virtual_memory(size_t size_bytes,
                                                                 size_t alignment) {
    const CudaContext::Current current(*context_);
    cuda::Pointer start = 0;
    if (!current || context_->driver().address_reserve(&start, size_bytes,
                                                       std::max(alignment, granularity_bytes_), 0,
                                                       0) != cuda::kSuccess)
        return nullptr;
    return std::make_unique<CudaVirtual>(context_, start, size_bytes);
}

} // namespace tightship::resource
