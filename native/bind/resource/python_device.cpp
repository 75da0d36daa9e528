#include "python_device.hpp"
#include "traverse.hpp"

#include <thread>

namespace nb = nanobind;

namespace tightship::bind {

namespace {

using resource::Chunks;
using resource::Fence;
using resource::PagedDevice;
using resource::PhysicalMemory;
using resource::VirtualMemory;

using Held = ReturnedObjects::Held;

/// Calls a method and returns its result as a truth value; an exception is written to stderr and
/// counts as false.
bool ask(nb::handle object, const char *name, auto... arguments) {
    try {
        return nb::cast<bool>(object.attr(name)(arguments...));
    } catch (nb::python_error &error) {
        error.discard_as_unraisable(name);
    } catch (const nb::cast_error &) {
    }
    return false;
}

struct PythonPhysical final : PhysicalMemory {
    PythonPhysical(size_t size_bytes, Held object)
        : PhysicalMemory(size_bytes), object(std::move(object)) {}

    Held object;
};

class PythonVirtual final : public VirtualMemory {
  public:
    PythonVirtual(uintptr_t start, size_t size_bytes, Held object, ReturnedObjects returned)
        : VirtualMemory(start, size_bytes), object_(std::move(object)),
          returned_(std::move(returned)) {}

    bool map(size_t offset_bytes, Chunks chunks) override {
        return with_gil([&] {
            return !returned_.is_collected() &&
                   ask(object_.get(), "map", offset_bytes, listed(chunks));
        });
    }
    size_t unmap(size_t offset_bytes, Chunks chunks) override {
        const bool done = with_gil([&] { // collected objects free their memory themselves
            return returned_.is_collected() ||
                   ask(object_.get(), "unmap", offset_bytes, listed(chunks));
        });
        return done ? chunks.size() : 0;
    }

  private:
    bool extend(size_t more_bytes) override {
        return with_gil(
            [&] { return !returned_.is_collected() && ask(object_.get(), "extend", more_bytes); });
    }
    static nb::list listed(Chunks chunks) {
        nb::list objects;
        for (const PhysicalMemory *chunk : chunks)
            objects.append(nb::handle(static_cast<const PythonPhysical *>(chunk)->object.get()));
        return objects;
    }

    Held object_;
    ReturnedObjects returned_;
};

class PythonFence final : public Fence {
  public:
    PythonFence(Held object, ReturnedObjects returned)
        : object_(std::move(object)), returned_(std::move(returned)) {}

    bool is_signalled() override {
        return with_gil(
            [&] { return returned_.is_collected() || ask(object_.get(), "is_signalled"); });
    }
    bool wait_for(std::chrono::nanoseconds limit) override {
        const auto stop = std::chrono::steady_clock::now() + limit;
        while (!is_signalled()) {
            if (std::chrono::steady_clock::now() >= stop)
                return false;
            const GilTaken gil; // released during the sleep, whether this thread held it or not
            const GilReleased release;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        return true;
    }

  private:
    Held object_;
    ReturnedObjects returned_;
};

class PatientFence final : public Fence {
  public:
    explicit PatientFence(std::shared_ptr<Fence> inner) : inner_(std::move(inner)) {}

    bool is_signalled() override { return inner_->is_signalled(); }
    bool wait_for(std::chrono::nanoseconds limit) override {
        const GilTaken gil;
        const GilReleased release;
        return inner_->wait_for(limit);
    }

  private:
    std::shared_ptr<Fence> inner_;
};

} // namespace

std::unique_ptr<PhysicalMemory> PythonDevice::create_physical_memory(size_t size_bytes) {
    return with_gil([&]() -> std::unique_ptr<PhysicalMemory> {
        try {
            nb::object made = create_physical_.get()(size_bytes);
            if (!made.is_none())
                return std::make_unique<PythonPhysical>(size_bytes,
                                                        returned_.hold(std::move(made)));
        } catch (nb::python_error &error) {
            error.discard_as_unraisable(create_physical_.get());
        }
        return nullptr;
    });
}

std::unique_ptr<VirtualMemory> PythonDevice::create_virtual_memory(size_t size_bytes,
                                                                   size_t alignment) {
    return with_gil([&]() -> std::unique_ptr<VirtualMemory> {
        try {
            nb::object made = create_virtual_.get()(size_bytes, alignment);
            if (made.is_none())
                return nullptr;
            const auto start = nb::cast<uintptr_t>(made.attr("address"));
            if (start % alignment == 0)
                return std::make_unique<PythonVirtual>(start, size_bytes,
                                                       returned_.hold(std::move(made)), returned_);
        } catch (nb::python_error &error) {
            error.discard_as_unraisable(create_virtual_.get());
        } catch (const nb::cast_error &) {
        }
        return nullptr;
    });
}

std::shared_ptr<PagedDevice> own_device(const std::shared_ptr<PagedDevice> &device) {
    const auto *python = dynamic_cast<const PythonDevice *>(device.get());
    return python != nullptr ? python->copy() : device;
}

int visit_device(const std::shared_ptr<PagedDevice> &device, visitproc visit, void *arg) {
    const auto *python = dynamic_cast<const PythonDevice *>(device.get());
    return python != nullptr ? python->traverse(visit, arg) : visit_held(device, visit, arg);
}

void collect_device(const std::shared_ptr<PagedDevice> &device) {
    if (auto *python = dynamic_cast<PythonDevice *>(device.get()))
        python->collect();
}

std::unique_lock<std::mutex> lock_without_gil(std::mutex &mutex) {
    if (!may_take_gil())
        return std::unique_lock(mutex);
    const GilTaken gil;
    const GilReleased release;
    return std::unique_lock(mutex);
}

std::shared_ptr<Fence> PythonStream::record() {
    return with_gil([&]() -> std::shared_ptr<Fence> {
        try {
            if (record_.is_taken_apart())
                return nullptr;
            nb::object fence = record_.get()();
            if (!fence.is_none())
                return std::make_shared<PythonFence>(returned_.hold(std::move(fence)), returned_);
        } catch (nb::python_error &error) {
            error.discard_as_unraisable(record_.get());
        }
        return nullptr;
    });
}

PythonHostStream::~PythonHostStream() {
    if (Py_IsInitialized() == 0) {
        abandon(); // its thread can no longer take the GIL, and may be waiting for it
        return;
    }
    const GilTaken gil;
    const GilReleased release;
    synchronize();
}

void PythonHostStream::submit(nb::callable work) {
    ++unfinished_count_;
    HostStream::submit([held = HeldCallable(std::move(work))] {
        with_gil([&] {
            try {
                held.get()();
            } catch (nb::python_error &error) {
                error.discard_as_unraisable(held.get());
            }
        });
        --unfinished_count_;
    });
}

std::shared_ptr<Fence> PythonHostStream::record() {
    auto fence = HostStream::record();
    return fence ? std::make_shared<PatientFence>(std::move(fence)) : nullptr;
}

} // namespace tightship::bind
