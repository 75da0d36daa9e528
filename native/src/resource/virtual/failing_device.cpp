#include "tightship/resource/virtual/failing_device.hpp"

#include <vector>

namespace tightship::resource {

namespace {

using StatePointer = std::shared_ptr<FailingDevice::State>;

struct FailingPhysical final : PhysicalMemory {
    explicit FailingPhysical(std::unique_ptr<PhysicalMemory> inner)
        : PhysicalMemory(inner->size_bytes()), inner(std::move(inner)) {}

    std::unique_ptr<PhysicalMemory> inner;
};

class FailingVirtual final : public VirtualMemory {
  public:
    FailingVirtual(std::unique_ptr<VirtualMemory> inner, StatePointer state)
        : VirtualMemory(inner->start(), inner->size_bytes()), inner_(std::move(inner)),
          state_(std::move(state)) {}

    bool map(size_t offset_bytes, Chunks chunks) override {
        return !state_->refuses() && inner_->map(offset_bytes, inside(chunks));
    }
    size_t unmap(size_t offset_bytes, Chunks chunks) override {
        return state_->refuses() ? 0 : inner_->unmap(offset_bytes, inside(chunks));
    }

  private:
    bool extend(size_t more_bytes) override {
        return !state_->refuses() && inner_->grow(more_bytes);
    }
    static std::vector<PhysicalMemory *> inside(Chunks chunks) {
        std::vector<PhysicalMemory *> inner;
        for (PhysicalMemory *chunk : chunks)
            inner.push_back(static_cast<FailingPhysical *>(chunk)->inner.get());
        return inner;
    }

    std::unique_ptr<VirtualMemory> inner_;
    StatePointer state_;
};

} // namespace

std::unique_ptr<PhysicalMemory> FailingDevice::create_physical_memory(size_t size_bytes) {
    if (state_->refuses())
        return nullptr;
    auto inner = device_->create_physical_memory(size_bytes);
    return inner ? std::make_unique<FailingPhysical>(std::move(inner)) : nullptr;
}

std::unique_ptr<VirtualMemory> FailingDevice::create_virtual_memory(size_t size_bytes,
                                                                    size_t alignment) {
    if (state_->refuses())
        return nullptr;
    auto inner = device_->create_virtual_memory(size_bytes, alignment);
    return inner ? std::make_unique<FailingVirtual>(std::move(inner), state_) : nullptr;
}

} // namespace tightship::resource
