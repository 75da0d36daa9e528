#ifdef TIGHTSHIP_ONEDNN

#include "tightship/onednn/primitive.hpp"

#include <vector>

namespace tightship::onednn {

namespace {

/// Owns a `dnnl_memory_t` for the duration of a call.
class BoundMemory {
  public:
    BoundMemory(const MemoryDesc &desc, void *data) {
        Library &library = Library::get();
        Library::check(library.memory_create(&memory_, desc.get(), library.engine, data),
                       "bind an operand");
    }
    ~BoundMemory() { Library::get().memory_destroy(memory_); }
    BoundMemory(const BoundMemory &) = delete;
    BoundMemory &operator=(const BoundMemory &) = delete;
    dnnl_memory_t get() const { return memory_; }

  private:
    dnnl_memory_t memory_ = nullptr;
};

} // namespace

const Reorderer::Entry &Reorderer::entry(const MemoryDesc &src, const MemoryDesc &dst) {
    for (const Entry &known : entries_)
        if (known.src == src && known.dst == dst)
            return known;
    const PrimitiveDesc desc = reorder(src, dst, Attributes());
    entries_.push_back({src, dst, desc.operand(DNNL_ARG_SCRATCHPAD), Primitive(desc)});
    return entries_.back();
}

void Reorderer::run(const MemoryDesc &src, const void *from, const MemoryDesc &dst, void *to) {
    Library &library = Library::get();
    const Entry &known = entry(src, dst);
    std::vector<char> scratch(static_cast<size_t>(known.scratch.size_bytes()));
    const BoundMemory source(src, const_cast<void *>(from));
    const BoundMemory target(dst, to);
    std::vector<dnnl_exec_arg_t> arguments{{DNNL_ARG_FROM, source.get()},
                                           {DNNL_ARG_TO, target.get()}};
    std::unique_ptr<BoundMemory> scratch_memory;
    if (!known.scratch.is_null()) {
        scratch_memory = std::make_unique<BoundMemory>(known.scratch, scratch.data());
        arguments.push_back({DNNL_ARG_SCRATCHPAD, scratch_memory->get()});
    }
    dnnl_stream_t stream = nullptr;
    Library::check(library.stream_create(&stream, library.engine, dnnl_stream_default_flags),
                   "create a stream");
    const auto status = library.primitive_execute(
        known.primitive.get(), stream, static_cast<int>(arguments.size()), arguments.data());
    library.stream_wait(stream);
    library.stream_destroy(stream);
    Library::check(status, "reorder an operand");
}

} // namespace tightship::onednn

#endif
