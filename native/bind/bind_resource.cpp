#include "bind.hpp"

#include "tightship/host_resource.hpp"
#include "tightship/os.hpp"

#include <memory>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

namespace nb = nanobind;
using namespace nb::literals;

namespace tightship::bind {

namespace {

/// A live allocation; goes back to its resource with the last Python reference.
class HostBlock {
  public:
    HostBlock(std::shared_ptr<HostResource> resource, size_t size_bytes, size_t alignment)
        : resource_(std::move(resource)), size_bytes_(size_bytes),
          pointer_(resource_->allocate(size_bytes, alignment)) {
        if (pointer_ == nullptr)
            throw std::bad_alloc();
    }
    ~HostBlock() { resource_->deallocate(pointer_, size_bytes_); }
    HostBlock(const HostBlock &) = delete;
    HostBlock &operator=(const HostBlock &) = delete;

    uintptr_t address() const { return reinterpret_cast<uintptr_t>(pointer_); }
    size_t size_bytes() const { return size_bytes_; }

  private:
    std::shared_ptr<HostResource> resource_;
    size_t size_bytes_;
    void *pointer_;
};

} // namespace

void resource(nb::module_ &module) {
    module.def("release_code", &os::release_code, "path"_a,
               "Drops the resident pages of a loaded library's code; they come back as they run.");
    nb::class_<HostResource>(module, "HostResource", "Whole pages from the operating system.")
        .def(nb::init<>())
        .def_prop_ro("current_bytes", &HostResource::current_bytes)
        .def_prop_ro("peak_bytes", &HostResource::peak_bytes)
        .def_prop_ro("allocation_count", &HostResource::allocation_count)
        .def(
            "allocate",
            [](std::shared_ptr<HostResource> self, size_t size_bytes, size_t alignment) {
                return std::make_unique<HostBlock>(std::move(self), size_bytes, alignment);
            },
            "size_bytes"_a, "alignment"_a = 64,
            "Zeroed pages as a block that is given back with its last reference.\n\n"
            "Raises MemoryError when the system refuses.");
    nb::class_<HostBlock>(module, "HostBlock", "Bytes obtained from a HostResource.")
        .def_prop_ro("address", &HostBlock::address)
        .def_prop_ro("size_bytes", &HostBlock::size_bytes)
        .def(
            "array",
            [](nb::handle_t<HostBlock> self) {
                auto &block = nb::cast<HostBlock &>(self);
                return nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(
                    reinterpret_cast<void *>(block.address()), {block.size_bytes()}, self);
            },
            "The bytes as a uint8 array that keeps the block alive.");
}

} // namespace tightship::bind
