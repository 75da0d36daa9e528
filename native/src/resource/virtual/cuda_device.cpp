#include "tightship/resource/virtual/cuda_device.hpp"

#include <algorithm>
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
        cuda::Pointer part = start();
        for (const size_t part_bytes : parts_) {
            (void)context_->driver().address_free(part, part_bytes);
            part += part_bytes;
        }
    }

    bool map(size_t offset_bytes, Chunks chunks) override {
        const CudaContext::Current current(*context_);
        if (!current)
            return false;
        const CudaDriver &driver = context_->driver();
        const cuda::Pointer first = start() + offset_bytes;
        cuda::Pointer to = first;
        bool is_done = true;
        for (const PhysicalMemory *chunk : chunks) {
            const auto &physical = static_cast<const CudaPhysical &>(*chunk);
            is_done =
                driver.map(to, physical.size_bytes(), 0, physical.handle, 0) == cuda::kSuccess;
            if (!is_done)
                break;
            to += physical.size_bytes();
        }
        const cuda::AccessDescription access{context_->properties().location, cuda::kReadWrite};
        if (is_done && to > first)
            is_done = driver.set_access(first, to - first, &access, 1) == cuda::kSuccess;
        if (!is_done && to > first)
            (void)driver.unmap(first, to - first);
        return is_done;
    }
    bool unmap(size_t offset_bytes, Chunks chunks) override {
        size_t size_bytes = 0;
        for (const PhysicalMemory *chunk : chunks)
            size_bytes += chunk->size_bytes();
        const CudaContext::Current current(*context_);
        return current &&
               context_->driver().unmap(start() + offset_bytes, size_bytes) == cuda::kSuccess;
    }

  private:
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
    std::vector<size_t> parts_; // as they were reserved, one behind the other
};

} // namespace

CudaContext::CudaContext(std::shared_ptr<const CudaDriver> driver, int ordinal)
    : driver_(std::move(driver)) {
    int count = 0;
    driver_->check(driver_->device_get_count(&count), "count its devices");
    if (ordinal < 0 || ordinal >= count)
        throw Unavailable("There is no CUDA device " + std::to_string(ordinal) +
                          ": the driver has " + std::to_string(count) +
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
